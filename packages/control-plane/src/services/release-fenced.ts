/** Releases what hosts held in epochs before their present one, for sandboxes and in pools: a host takes a new epoch only when nothing runs on it. */
import type { Context } from '../context.ts'
import { wakePool } from '../events/wake-bus.ts'
import { fencedAssignments } from '../store/assignments.ts'
import type { Database } from '../store/database.ts'
import { fencePools, hostsWithFencedPools } from '../store/pools.ts'
import { releaseByFence } from './runtime-release.ts'

const BATCH = 100

/**
 * One batch of them.
 * @param hostId only what this host held
 */
export async function releaseFenced(
  context: Pick<Context, 'config'> & { readonly db: Database },
  hostId?: string,
): Promise<{ readonly released: number; readonly mayBeMore: boolean }> {
  const fenced = await fencedAssignments(context.db, hostId, BATCH)
  let released = 0
  for (const { id, sandbox_id } of fenced) {
    const done = await context.db.transaction((tx) => releaseByFence(tx, { assignmentId: id, sandboxId: sandbox_id }, context.config.timing))
    if (done) released += 1
  }
  for (const host of await hostsWithFencedPools(context.db, hostId)) {
    await context.db.transaction(async (tx) => {
      if ((await fencePools(tx, host)) > 0) tx.wake(wakePool(host))
    })
  }
  return { released, mayBeMore: fenced.length === BATCH }
}
