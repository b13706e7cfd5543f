/** Changes that say nothing about the runtime: its deadline, its name, its metadata. */
import type { UpdateSandbox } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import { assertNotIdShaped } from '../domain/sandbox/name.ts'
import type { Principal } from '../store/api-keys.ts'
import { audit } from '../store/audit-log.ts'
import { type Transaction, violates } from '../store/database.ts'
import { recordEvent } from '../store/events.ts'
import { extendSandboxRow, lockSandboxOfTenant, NAME_INDEX, type SandboxRow, setSandboxNameAndMetadata } from '../store/sandboxes.ts'
import { nameTaken, sandboxEnded, sandboxNotFound } from './not-found.ts'

type Request = { readonly principal: Principal; readonly idOrName: string; readonly requestId: string }

/** @throws CodedError `sandbox_not_found`, `sandbox_ended` */
export async function extendSandbox(context: Context, request: Request & { readonly ttlSeconds: number }): Promise<SandboxRow> {
  return await context.db.transaction(async (tx) => {
    const row = await lockUndeleted(tx, request)
    await record(tx, request, row, 'sandbox.extend', { ttl_seconds: request.ttlSeconds })
    return changed(await extendSandboxRow(tx, row, request.ttlSeconds))
  })
}

/** @throws CodedError `sandbox_not_found`, `sandbox_ended`, `name_taken` */
export async function updateSandbox(context: Context, request: Request & { readonly change: UpdateSandbox }): Promise<SandboxRow> {
  const { change } = request
  if (typeof change.name === 'string') assertNotIdShaped(change.name)
  try {
    return await context.db.transaction(async (tx) => {
      const row = await lockUndeleted(tx, request)
      await record(tx, request, row, 'sandbox.update', { fields: Object.keys(change).sort().join(',') })
      return changed(await setSandboxNameAndMetadata(tx, row, change))
    })
  } catch (cause) {
    const { name } = change
    if (typeof name === 'string' && violates(cause, NAME_INDEX)) throw await nameTaken(context.db, request.principal.tenantId, name, cause)
    throw cause
  }
}

async function lockUndeleted(tx: Transaction, request: Request): Promise<SandboxRow> {
  const row = await lockSandboxOfTenant(tx, request.principal.tenantId, request.idOrName)
  if (row === undefined) throw sandboxNotFound(request.idOrName)
  if (row.desired === 'deleted') throw sandboxEnded(row)
  return row
}

async function record(
  tx: Transaction,
  request: Request,
  row: SandboxRow,
  action: 'sandbox.update' | 'sandbox.extend',
  detail: Record<string, string | number>,
): Promise<void> {
  await recordEvent(tx, {
    tenantId: row.tenant_id,
    type: action === 'sandbox.update' ? 'sandbox.updated' : 'sandbox.extended',
    sandboxId: row.id,
    generation: row.generation,
  })
  await audit(tx, { tenantId: row.tenant_id, actor: request.principal.actor, action, subject: row.id, requestId: request.requestId, detail })
}

function changed(row: SandboxRow | undefined): SandboxRow {
  if (row === undefined) throw new InvariantBroken('a locked sandbox was not changed')
  return row
}
