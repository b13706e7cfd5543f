/**
 * The states of a sandbox and every way between them.
 *
 * What is wanted (`desired`) and what is seen (`observed`) are apart; a move changes either or both and is the only way to change them. The store
 * has one function that applies a move (store/sandboxes.ts, `moveSandbox`), guarded in the same statement by the generation and by the states
 * that the move may start from. A move that changes what is wanted, or that makes an earlier runtime unwanted, advances the generation: from
 * then on every ticket, report and route of the runtime before it is stale.
 */
import type { Sandbox, SandboxStatus } from '@sandglass/contract'

export type Desired = Sandbox['desired']

type StateNote = {
  /** Nothing moves it any more. */
  readonly final: boolean
  /** Desired states that it can be seen with. */
  readonly desired: readonly Desired[]
}

export const STATES: Readonly<Record<SandboxStatus, StateNote>> = {
  /** Entered at create, by a start, by a restart, and again after a start that failed and may be tried again. No runtime is wanted anywhere yet; an
   * assignment of an earlier generation may still wait for its proof of end. Left by placement, by stop, by delete. */
  pending: { final: false, desired: ['running'] },
  /** Entered when placement reserved a host: the live assignment has the current generation. Left when the ticket was sent, when the runtime is
   * ready, when the start failed or took too long, by stop, by delete. */
  assigned: { final: false, desired: ['running'] },
  /** The ticket was sent to the host and the start takes a while. Left like `assigned`. */
  starting: { final: false, desired: ['running'] },
  /** The host proved the runtime of the current generation; routes exist, usage is counted. Left when the runtime is gone, by stop, by delete. */
  ready: { final: false, desired: ['running'] },
  /** Stopped, and a host has not proved the end yet: amounts and quota are still held. Left by that proof, by start, by delete. */
  stopping: { final: false, desired: ['stopped'] },
  /** Stopped, nothing of it runs and nothing is held; the record is what is left. Left by start, by delete. */
  stopped: { final: false, desired: ['stopped'] },
  /** The start was given up or the runtime was lost; the reason says which. Amounts go back once the end is proved. Left by start, by delete. */
  failed: { final: false, desired: ['stopped'] },
  /** Deleted, and a host has not proved the end yet: amounts are still reserved. Left by that proof only. */
  terminating: { final: false, desired: ['deleted'] },
  /** Deleted and nothing of it is left. */
  terminated: { final: true, desired: ['deleted'] },
}

type Move = {
  readonly from: readonly SandboxStatus[]
  readonly to: SandboxStatus
  readonly desired: Desired
  /** `next`: whatever spoke for the runtime before is stale from here on. */
  readonly generation: 'same' | 'next'
}

const beforeReady: readonly SandboxStatus[] = ['assigned', 'starting']
const wantedRunning: readonly SandboxStatus[] = ['pending', 'assigned', 'starting', 'ready']
const undeleted: readonly SandboxStatus[] = ['pending', 'assigned', 'starting', 'ready', 'stopping', 'stopped', 'failed']

export const MOVES = {
  /** A host was reserved. */
  place: { from: ['pending'], to: 'assigned', desired: 'running', generation: 'next' },
  /** Its ticket was written to the host's watch. */
  dispatch: { from: ['assigned'], to: 'starting', desired: 'running', generation: 'same' },
  /** The host proved it. */
  prove: { from: beforeReady, to: 'ready', desired: 'running', generation: 'same' },
  /** The start failed, was refused or took too long, and there is an attempt left. */
  retry: { from: beforeReady, to: 'pending', desired: 'running', generation: 'next' },
  /** A ready runtime is gone, and the restart policy wants it again; or all starts of such a restart failed, and its row is not over. */
  restart: { from: ['assigned', 'starting', 'ready'], to: 'pending', desired: 'running', generation: 'next' },
  /** Stopped while an assignment is live. */
  stop: { from: wantedRunning, to: 'stopping', desired: 'stopped', generation: 'next' },
  /** Stopped with no live assignment. */
  halt: { from: wantedRunning, to: 'stopped', desired: 'stopped', generation: 'next' },
  /** The last assignment of a stopped sandbox was released, or a stop found that none is live. */
  rest: { from: ['stopping'], to: 'stopped', desired: 'stopped', generation: 'same' },
  /** Wanted again. What an earlier assignment still holds is released first, as after `retry`. */
  start: { from: ['stopping', 'stopped', 'failed'], to: 'pending', desired: 'running', generation: 'next' },
  /** The start is given up, or a ready runtime is gone and the restart policy lets it be (left wanted, reconcilers would start it again). */
  fail: { from: ['assigned', 'starting', 'ready'], to: 'failed', desired: 'stopped', generation: 'next' },
  /** Deleted while an assignment is live. guard: bump.delete */
  terminate: { from: undeleted, to: 'terminating', desired: 'deleted', generation: 'next' },
  /** Deleted with no live assignment. guard: bump.delete */
  discard: { from: undeleted, to: 'terminated', desired: 'deleted', generation: 'next' },
  /** The last assignment of a deleted sandbox was released. */
  finish: { from: ['terminating'], to: 'terminated', desired: 'deleted', generation: 'same' },
} as const satisfies Record<string, Move>

export type MoveName = keyof typeof MOVES

export function mayMove(name: MoveName, from: SandboxStatus): boolean {
  const move: Move = MOVES[name]
  return move.from.includes(from)
}
