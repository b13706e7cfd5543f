/**
 * Gives back what an assignment holds. Only two things lead here (guard: release.proof): a host's proof that nothing of the generation is left, and a
 * host epoch newer than the assignment's. Either the host ended everything before it registered, or it was fenced: then its own deadline had passed before,
 * by which it has stopped all by itself. Time alone never does.
 */
import type { Loss, Pauses } from '../domain/sandbox/end-plan.ts'
import { wakePlacement } from '../events/wake-bus.ts'
import { type AssignmentRow, lockLease, lockLiveAssignment, releaseAssignment } from '../store/assignments.ts'
import type { Transaction } from '../store/database.ts'
import { endOperation } from '../store/operations.ts'
import { giveQuotaBack } from '../store/quotas.ts'
import { lockSandbox, moveLocked, type SandboxRow } from '../store/sandboxes.ts'
import { applyLoss } from './runtime-loss.ts'

export type EndedOutcome = 'released' | 'nothing_live' | 'older_than_live' | 'pool_behind'

/** A host proved that nothing of the sandbox up to a generation is left on it. */
export async function releaseByEnded(
  tx: Transaction,
  proof: { readonly sandboxId: string; readonly hostId: string; readonly upto: number; readonly poolVersion: number | null; readonly loss: Loss },
  pauses: Pauses,
): Promise<EndedOutcome> {
  const row = await lockSandbox(tx, proof.sandboxId)
  if (row === undefined) return 'nothing_live'
  const assignment = await lockLiveAssignment(tx, row.id)
  if (assignment === undefined || assignment.host_id !== proof.hostId) return 'nothing_live'
  // guard: ended.gen
  if (assignment.generation > proof.upto) return 'older_than_live'
  // guard: ended.pool: until the host has stored what the claim made of its pool, it may still count the unit as a member's. Its end order says it again.
  if (assignment.pool_version !== null && (proof.poolVersion ?? -1) < assignment.pool_version) {
    if (assignment.generation === row.generation) await applyLoss(tx, row, proof.loss, pauses)
    return 'pool_behind'
  }
  await release(tx, row, assignment, 'ended', proof.loss, pauses)
  return 'released'
}

/** The host registered anew since, or was fenced: what it held in an earlier epoch is gone, or has stopped and is never accepted again. */
export async function releaseByFence(tx: Transaction, read: { readonly assignmentId: string; readonly sandboxId: string }, pauses: Pauses): Promise<boolean> {
  const row = await lockSandbox(tx, read.sandboxId)
  if (row === undefined) return false
  const assignment = await lockLiveAssignment(tx, row.id)
  // guard: rf.gen: the assignment that was read, not whichever is live by now
  if (assignment === undefined || assignment.id !== read.assignmentId) return false
  const lease = await lockLease(tx, assignment.host_id)
  // guard: rf.epoch
  if (lease === undefined || assignment.epoch >= lease.epoch) return false
  const reason = assignment.epoch <= (lease.fenced_epoch ?? -1) ? 'host_lost' : 'host_restarted'
  await release(tx, row, assignment, 'fence', { reason, detail: null }, pauses)
  return true
}

/** Order of locks: sandbox, assignment, lease, capacity, quota. */
async function release(tx: Transaction, row: SandboxRow, assignment: AssignmentRow, by: 'ended' | 'fence', loss: Loss, pauses: Pauses): Promise<void> {
  // Nobody asked for the end of the current generation: it failed.
  const wanted = assignment.generation === row.generation
  const left = wanted ? await applyLoss(tx, row, loss, pauses) : row
  if (left.observed === 'terminating') {
    await moveLocked(tx, left, 'finish')
    await endOperation(tx, left.operation_id, null)
  }
  if (left.observed === 'stopping') await moveLocked(tx, left, 'rest')
  // The operation that is pending for a stopped one is a stop, also of one that had failed.
  if (left.desired === 'stopped') await endOperation(tx, left.operation_id, null)
  await releaseAssignment(tx, assignment, by)
  if (left.desired !== 'running') await giveQuotaBack(tx, row, left.desired === 'deleted' ? 'deleted' : 'kept')
  tx.wake(wakePlacement)
}
