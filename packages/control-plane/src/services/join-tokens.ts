/** Makes and revokes join tokens. */
import { CodedError, type CreateJoinToken, LIMITS, newJoinTokenId, sha256Hex } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import type { Principal } from '../store/api-keys.ts'
import { audit } from '../store/audit-log.ts'
import { insertJoinToken, type JoinTokenRow, revokeJoinToken } from '../store/join-tokens.ts'

const SECRET_BYTES = 32

type TokenRequest = { readonly principal: Principal; readonly requestId: string }

export async function createJoinToken(context: Context, request: TokenRequest & { body: CreateJoinToken }): Promise<{ row: JoinTokenRow; token: string }> {
  const { role = 'host', ttl_seconds: ttlSeconds = LIMITS.joinTokenSecondsDefault, labels = {} } = request.body
  const secret = Buffer.from(context.world.random(SECRET_BYTES)).toString('base64url')
  const token = `sgj_${secret}.${context.authority.fingerprint}`
  const id = newJoinTokenId(context.world.random)
  const row = await context.db.transaction(async (tx) => {
    const made = await insertJoinToken(tx, { id, sha256: sha256Hex(token), role, labels, ttlSeconds })
    if (made === undefined) throw new InvariantBroken('two join tokens have the same secret')
    await audit(tx, {
      tenantId: null,
      actor: request.principal.actor,
      action: 'join_token.create',
      subject: id,
      requestId: request.requestId,
      detail: { role, ttl_seconds: ttlSeconds },
    })
    return made
  })
  return { row, token }
}

/** Who has joined with it stays. @throws CodedError `join_token_not_found` */
export async function revokeToken(context: Context, request: TokenRequest & { id: string }): Promise<void> {
  await context.db.transaction(async (tx) => {
    const revoked = await revokeJoinToken(tx, request.id)
    if (revoked === undefined) throw new CodedError('join_token_not_found')
    if (!revoked.changed) return
    await audit(tx, { tenantId: null, actor: request.principal.actor, action: 'join_token.revoke', subject: request.id, requestId: request.requestId })
  })
}
