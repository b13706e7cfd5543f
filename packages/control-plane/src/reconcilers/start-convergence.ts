/**
 * Starts that take too long are retired: their generation is no longer wanted, which makes an end order due. Nothing is released here; the
 * amounts go back, and the next attempt is placed, when the host proves the end (guard: release.proof).
 */
import type { Context } from '../context.ts'
import { applyLoss } from '../services/runtime-loss.ts'
import { lockLiveAssignment, overdueStarts } from '../store/assignments.ts'
import type { Database } from '../store/database.ts'
import { lockSandbox } from '../store/sandboxes.ts'
import type { Outcome } from './reconciler.ts'

const BATCH = 100

export async function reconcileStarts(context: Pick<Context, 'config'> & { readonly db: Database }): Promise<Outcome> {
  const { timing } = context.config
  const { startTimeoutMs } = timing
  const overdue = await overdueStarts(context.db, startTimeoutMs, BATCH)
  let retired = 0
  for (const { sandbox_id, generation } of overdue) {
    const done = await context.db.transaction(async (tx) => {
      const row = await lockSandbox(tx, sandbox_id)
      if (row === undefined || row.generation !== generation) return false
      const assignment = await lockLiveAssignment(tx, row.id)
      if (assignment?.generation !== generation || (row.observed !== 'assigned' && row.observed !== 'starting')) return false
      const detail = `the runtime was not ready within ${startTimeoutMs / 1_000} s`
      await applyLoss(tx, row, { reason: 'start_timeout', detail }, timing)
      return true
    })
    if (done) retired += 1
  }
  return { actions: retired, nextInMs: overdue.length === BATCH ? 0 : undefined }
}
