/** Releases what hosts held in epochs before their present one, for sandboxes and in pools: a host takes a new epoch only when nothing runs on it. */
import type { Context } from '../context.ts'
import { wakePool } from '../events/wake-bus.ts'
import { fencedAssignments } from '../store/assignments.ts'
import type { Database } from '../store/database.ts'
import { fencePools, hostsWithFencedPools } from '../store/pools.ts'
import { releaseByFence } from './runtime-release.ts'

const BATCH = 100

/** Released at once: what ran on a lost host waits for it. Each holds a connection of a pool in which looks at leases, or renewals, need theirs. */
const AT_ONCE = 3

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
  const waiting = [...fenced]
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const read = { assignmentId: next.id, sandboxId: next.sandbox_id }
      if (await context.db.transaction((tx) => releaseByFence(tx, read, context.config.timing))) released += 1
    }
  }
  const lanes = await Promise.allSettled(Array.from({ length: AT_ONCE }, lane))
  for (const ended of lanes) if (ended.status === 'rejected') throw ended.reason
  for (const host of await hostsWithFencedPools(context.db, hostId)) {
    await context.db.transaction(async (tx) => {
      if ((await fencePools(tx, host)) > 0) tx.wake(wakePool(host))
    })
  }
  return { released, mayBeMore: fenced.length === BATCH }
}
