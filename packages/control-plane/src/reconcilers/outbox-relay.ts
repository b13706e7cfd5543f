/** Sends the wake-ups of committed transactions to other replicas. Sent twice or lost, they change when something is done, never what. */
import type { Context } from '../context.ts'
import type { Database } from '../store/database.ts'
import { relayOutbox } from '../store/outbox.ts'
import type { Outcome } from './reconciler.ts'

const BATCH = 200

export async function reconcileOutbox(context: Pick<Context, 'world'> & { readonly db: Database }): Promise<Outcome> {
  const taken = await relayOutbox(context.db, BATCH)
  if (taken > 0) await context.world.faults.reach('outbox.relayed')
  return { actions: taken, nextInMs: taken === BATCH ? 0 : undefined }
}
