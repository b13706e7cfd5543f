/**
 * How one pool gets to its target, and what a claim gets from it. Pure.
 *
 * A claim has moved a unit of the pool to its sandbox. As long as it waits, it waits for a member that boots, and that member is no longer the
 * pool's own: it stands for the sandbox. What is being taken down still takes up room.
 */
import { LIMITS } from '@sandglass/contract'
import type { RuntimeName } from './runtime-name.ts'

export type PoolView = {
  readonly target: number
  readonly ready: readonly RuntimeName[]
  /** Furthest along first. */
  readonly booting: readonly RuntimeName[]
  readonly ending: number
  /** Claims that wait. */
  readonly waiting: number
}

/** Members that exist, promised or not: what an acknowledgement is about. guard: pool.ackn */
export const membersOf = ({ ready, booting, ending }: PoolView): number => ready.length + booting.length + ending

export type PoolPlan = { readonly boot: number; readonly end: readonly RuntimeName[] }

export function planPool(view: PoolView): PoolPlan {
  const { target, ready, booting, ending, waiting } = view
  const promised = Math.min(waiting, booting.length)
  const own = ready.length + booting.length - promised
  const surplus = own - target
  if (surplus <= 0) return { boot: Math.max(0, target - own - ending), end: [] }
  // Who has cost the least goes first.
  const idle = [...booting.slice(promised).toReversed(), ...ready]
  return { boot: 0, end: idle.slice(0, surplus) }
}

export type ClaimDecision =
  | { readonly kind: 'pick'; readonly name: RuntimeName }
  /** For a member that boots, or until there is room for a cold start. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'cold' }

/** @param ahead claims that wait since longer */
export function decideClaim(view: PoolView, ahead: number): ClaimDecision {
  const [first] = view.ready
  if (first !== undefined) return { kind: 'pick', name: first }
  if (view.booting.length > ahead) return { kind: 'wait' }
  // guard: cold.fit. Every member that boots stands for a claim; what else there is must be covered by the target.
  return view.ending <= view.target ? { kind: 'cold' } : { kind: 'wait' }
}

export type BootRoom = {
  readonly members: number
  readonly inFlight: number
  readonly startsWaiting: number
  /** The pool can do with one boot at a time. */
  readonly gently: boolean
}

/** How many members may begin to boot on this host now. A sandbox that waits to start comes first. */
export function bootsAllowed({ members, inFlight, startsWaiting, gently }: BootRoom): number {
  if (startsWaiting > 0) return 0
  const atOnce = gently ? 1 : LIMITS.poolBootsInFlight
  return Math.max(0, Math.min(atOnce - inFlight, LIMITS.poolMembers - members))
}

/**
 * Whether a pool is refilled gently: it still has half of its members, and sandboxes are being claimed, whose first commands want the CPUs that a boot
 * would take.
 */
export const refillsGently = ({ target, ready }: PoolView, isClaimed: boolean): boolean => isClaimed && ready.length * 2 >= target

/** Those that are filled: what more an order tells of is stored and acknowledged, and stays empty. */
export function filledPools<Pool extends { readonly target: number }>(pools: readonly Pool[]): readonly Pool[] {
  return pools.filter(({ target }) => target > 0).slice(0, LIMITS.hostPools)
}
