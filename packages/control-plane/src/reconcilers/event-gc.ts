/** Deletes events past their retention. A reader that was further back is told of the gap. */
import type { Database } from '../store/database.ts'
import { deleteOldEvents } from '../store/events.ts'
import type { Outcome } from './reconciler.ts'

const BATCH_PER_TENANT = 1_000

export async function collectEvents(db: Database): Promise<Outcome> {
  const deleted = await deleteOldEvents(db, BATCH_PER_TENANT)
  return { actions: deleted, nextInMs: deleted >= BATCH_PER_TENANT ? 0 : undefined }
}
