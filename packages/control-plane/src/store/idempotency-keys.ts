/** Keys by which a repeated create finds what the first one made. */
import { LIMITS, sha256Hex } from '@sandglass/contract'
import type { Queryable, Transaction } from './database.ts'
import { statement } from './statement.ts'

const claim = statement<{ subject_id: string }>('idempotency-keys/claim')
const find = statement<{ body_sha256: string; subject_id: string }>('idempotency-keys/find')
const deleteOld = statement('idempotency-keys/delete-old')

export type IdempotencyClaim = {
  readonly tenantId: string
  readonly route: string
  readonly key: string
  readonly bodySha256: string
  /** What this request makes if it is the first. */
  readonly subjectId: string
}

/** @returns true for the first request with the key; a repeat waits here for a first one that is still open, at most the lock timeout */
export async function claimIdempotencyKey(tx: Transaction, request: IdempotencyClaim): Promise<boolean> {
  const rows = await tx.run(claim, [
    request.tenantId,
    request.route,
    sha256Hex(request.key),
    request.bodySha256,
    request.subjectId,
    LIMITS.idempotencyKeyLifeSeconds,
  ])
  return rows.length === 1
}

export const findIdempotencyKey = async (db: Queryable, request: IdempotencyClaim): Promise<{ body_sha256: string; subject_id: string } | undefined> =>
  (await db.run(find, [request.tenantId, request.route, sha256Hex(request.key)]))[0]

export const deleteOldIdempotencyKeys = async (db: Queryable, limit: number): Promise<number> =>
  (await db.run(deleteOld, [LIMITS.idempotencyKeyLifeSeconds, limit])).length
