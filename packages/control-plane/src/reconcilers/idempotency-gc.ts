/** Deletes idempotency keys past their life. They are ignored from that moment on; this only frees the space. */
import type { Database } from '../store/database.ts'
import { deleteOldIdempotencyKeys } from '../store/idempotency-keys.ts'
import type { Outcome } from './reconciler.ts'

const BATCH = 1_000

export async function collectIdempotencyKeys(db: Database): Promise<Outcome> {
  const deleted = await deleteOldIdempotencyKeys(db, BATCH)
  return { actions: deleted, nextInMs: deleted === BATCH ? 0 : undefined }
}
