/** Makes and revokes API keys. */
import { CodedError, type CreateApiKey, hasRole, newApiKeyId, newTenantId, sha256Hex } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import { wakeKeyRevoked } from '../events/wake-bus.ts'
import { type ApiKeyRow, findApiKey, insertApiKey, type Principal, revokeApiKey } from '../store/api-keys.ts'
import { audit } from '../store/audit-log.ts'
import type { Transaction } from '../store/database.ts'
import { ensureTenant } from '../store/tenants.ts'
import { derivedSecret, randomSecret } from './api-key-secret.ts'
import { once } from './idempotency.ts'

const ROUTE = 'POST /v1/api-keys'

type CreateRequest = {
  readonly principal: Principal
  readonly body: CreateApiKey
  readonly idempotencyKey: string | undefined
  readonly requestId: string
}

/** @throws CodedError `forbidden` for a role above the caller's own, or another tenant */
export async function createApiKey(context: Context, request: CreateRequest): Promise<{ row: ApiKeyRow; secret: string; replayed: boolean }> {
  const { principal, body, idempotencyKey } = request
  const role = body.role ?? 'member'
  // Nobody gives away more than they have.
  if (!hasRole(principal.role, role)) throw new CodedError('forbidden', `A key with the role ${principal.role} cannot make one with the role ${role}.`)
  if (body.tenant !== undefined && principal.role !== 'operator') throw new CodedError('forbidden', 'Only an operator can name a tenant.')
  const fresh = newApiKeyId(context.world.random)
  const secretOf = (apiKeyId: string): string =>
    idempotencyKey === undefined
      ? randomSecret(context.world.random)
      : derivedSecret(context.config.ticketKey, { tenantId: principal.tenantId, apiKeyId, idempotencyKey })
  return await context.db.transaction(async (tx) => {
    const first = await once(tx, { tenantId: principal.tenantId, route: ROUTE, key: idempotencyKey, body, subjectId: fresh })
    if (first.replayed) return { row: await known(tx, first.subjectId), secret: secretOf(first.subjectId), replayed: true }
    const secret = secretOf(fresh)
    const tenantId = await tenantOf(context, tx, principal, body.tenant)
    const row = await insertApiKey(tx, {
      id: fresh,
      tenantId,
      name: body.name,
      role,
      sha256: sha256Hex(secret),
      expiresInSeconds: body.expires_in_seconds ?? null,
    })
    if (row === undefined) throw new InvariantBroken('two API keys have the same secret')
    await audit(tx, {
      tenantId,
      actor: principal.actor,
      action: 'api_key.create',
      subject: fresh,
      requestId: request.requestId,
      detail: { role, name: body.name },
    })
    return { row, secret, replayed: false }
  })
}

async function known(tx: Transaction, id: string): Promise<ApiKeyRow> {
  const row = await findApiKey(tx, id, null)
  if (row === undefined) throw new InvariantBroken(`API key ${id} of an idempotency key does not exist`)
  return row
}

async function tenantOf(context: Context, tx: Transaction, principal: Principal, name: string | undefined): Promise<string> {
  if (name === undefined) return principal.tenantId
  const tenant = await ensureTenant(tx, name, () => newTenantId(context.world.random))
  if (tenant === undefined) throw new InvariantBroken(`tenant ${name} was not made`)
  return tenant.id
}

/** At once on this API; gateways hear of it by the feed. @throws CodedError `api_key_not_found` */
export async function revokeKey(context: Context, request: { principal: Principal; id: string; requestId: string }): Promise<void> {
  const { principal } = request
  await context.db.transaction(async (tx) => {
    const revoked = await revokeApiKey(tx, request.id, tenantScope(principal))
    if (revoked === undefined) throw new CodedError('api_key_not_found')
    await audit(tx, { tenantId: revoked.tenant_id, actor: principal.actor, action: 'api_key.revoke', subject: revoked.id, requestId: request.requestId })
    tx.wake(wakeKeyRevoked(revoked.id))
  })
}

/** Operators see the keys of every tenant: they are who makes the first key of one. */
export const tenantScope = (principal: Principal): string | null => (principal.role === 'operator' ? null : principal.tenantId)
