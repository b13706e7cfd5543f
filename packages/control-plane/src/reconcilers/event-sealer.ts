/**
 * Gives the events of the change feed their positions (store/sql/events/seal.sql), then has the open streams look.
 *
 * Any number of sealers may run: they take turns by a lock that ends with the transaction, so a crash in between has sealed nothing. While nobody reads
 * here, a look per period is enough; with readers it is woken by commits and looks again soon for what waits for an older transaction.
 */
import type { ChangeFeed } from '../events/change-feed.ts'
import type { Database } from '../store/database.ts'
import { sealEvents } from '../store/events.ts'
import type { Outcome } from './reconciler.ts'

const BATCH = 1_000
const HELD_AGAIN_MS = 20

export async function sealAndShow(db: Database, feed: ChangeFeed, holdMs: number): Promise<Outcome> {
  const { sealed, held } = await sealEvents(db, BATCH, holdMs)
  await feed.look()
  if (sealed > 0 && sealed + held >= BATCH) return { actions: sealed, nextInMs: 0 }
  return { actions: sealed, nextInMs: held > 0 && feed.size > 0 ? HELD_AGAIN_MS : undefined }
}
