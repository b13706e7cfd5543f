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
  /** Entered at create, and again after a start that failed and may be tried again. No runtime is wanted anywhere yet; an assignment of an
   * earlier generation may still wait for its proof of end. Left by placement, by delete. */
  pending: { final: false, desired: ['running'] },
  /** Entered when placement reserved a host: the live assignment has the current generation. Left when the ticket was sent, when the runtime is
   * ready, when the start failed or took too long, by delete. */
  assigned: { final: false, desired: ['running'] },
  /** The ticket was sent to the host and the start takes a while. Left like `assigned`. */
  starting: { final: false, desired: ['running'] },
  /** The host proved the runtime of the current generation; routes exist, usage is counted. Left when the runtime is gone, by delete. */
  ready: { final: false, desired: ['running'] },
  /** A stop was ordered and its end is not proved. No public route asks for a stop yet. Left by delete. */
  stopping: { final: false, desired: ['stopped'] },
  /** A stop was proved. Left by delete. */
  stopped: { final: false, desired: ['stopped'] },
  /** The start was given up or the runtime was lost; the reason says which. Amounts go back once the end is proved. Left by delete. */
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
  /** The start is given up, or a ready runtime is gone (restart policy `never`: left wanted, reconcilers would start it again). */
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
