/** Applies what domain/sandbox/end-plan.ts decides when the runtime of the current generation is gone or did not come to be. */
import { CodedError, type Problem, problemOf } from '@sandglass/contract'
import { invariant } from '../domain/invariant.ts'
import { type Loss, type Pauses, planLoss } from '../domain/sandbox/end-plan.ts'
import { wakeHost, wakePlacement } from '../events/wake-bus.ts'
import type { Transaction } from '../store/database.ts'
import { endOperation } from '../store/operations.ts'
import { moveLocked, restartsOf, type SandboxRow } from '../store/sandboxes.ts'

/**
 * Retires the current generation; releases nothing.
 * @param row locked, and its live assignment has the current generation
 * @returns the row as it now is
 */
export async function applyLoss(tx: Transaction, row: SandboxRow, loss: Loss, pauses: Pauses): Promise<SandboxRow> {
  const restarts = row.observed === 'ready' && row.restart_policy !== 'never' ? await restartsOf(tx, row.id) : row.restarts
  const lost = { observed: row.observed, startAttempts: row.start_attempts, restartPolicy: row.restart_policy, restarts }
  const plan = planLoss(lost, loss, pauses)
  if (plan.move === 'none') return row
  // Its end order became due.
  if (row.host_id !== null) tx.wake(wakeHost(row.host_id, row.id))
  if (plan.move === 'fail') {
    if (plan.startFailed) await endOperation(tx, row.operation_id, startProblem(plan.statusReason))
    const moved = await moveLocked(tx, row, 'fail', { statusReason: plan.statusReason })
    invariant(moved.desired === 'stopped', `failed sandbox ${row.id} is still wanted`)
    return moved
  }
  tx.wake(wakePlacement)
  const { move, ...details } = plan
  return await moveLocked(tx, row, move, details)
}

function startProblem(reason: string): Problem {
  return problemOf(new CodedError('sandbox_start_failed', `The sandbox did not start: ${reason}.`))
}
