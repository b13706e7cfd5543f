/**
 * Once per key: the claim is the first statement of the transaction that has the effect, so either both are there or neither.
 *
 * A repeat whose first request is still open waits for it inside the insert, up to the lock timeout of the connection; past that it is told
 * `idempotency_in_progress`, which clients retry.
 */
import { CodedError, sha256Hex } from '@sandglass/contract'
import { canonicalJson } from '../domain/canonical-json.ts'
import { isLockTimeout, type Transaction } from '../store/database.ts'
import { claimIdempotencyKey, findIdempotencyKey } from '../store/idempotency-keys.ts'

export type OnceRequest = {
  readonly tenantId: string
  readonly route: string
  /** Undefined: every request is its own. */
  readonly key: string | undefined
  readonly body: unknown
  readonly subjectId: string
}

/** @throws CodedError `idempotency_key_reused` for another body, `idempotency_in_progress` when the first request takes too long */
export async function once(tx: Transaction, request: OnceRequest): Promise<{ replayed: false } | { replayed: true; subjectId: string }> {
  if (request.key === undefined) return { replayed: false }
  const claim = { ...request, key: request.key, bodySha256: sha256Hex(canonicalJson(request.body)) }
  try {
    if (await claimIdempotencyKey(tx, claim)) return { replayed: false }
  } catch (cause) {
    if (isLockTimeout(cause)) throw new CodedError('idempotency_in_progress', undefined, { cause, retryAfterSeconds: 1 })
    throw cause
  }
  const known = await findIdempotencyKey(tx, claim)
  // Collected between the two statements, at the end of its life.
  if (known === undefined) throw new CodedError('idempotency_in_progress', undefined, { retryAfterSeconds: 1 })
  if (known.body_sha256 !== claim.bodySha256) {
    throw new CodedError('idempotency_key_reused', 'This Idempotency-Key was used with another body.')
  }
  return { replayed: true, subjectId: known.subject_id }
}
