/**
 * What a host stores of one pool in one epoch, and the only function that moves it.
 *
 * Positions come with tickets, end orders and pool orders, in any order and more than once. Each is a state that SQL had, so the newest is the
 * one that holds.
 */
import type { PoolPosition, PoolSpec } from '@sandglass/contract'

export type StoredPool = PoolPosition & {
  /** What its members are booted from; null while only end orders have told of the pool. */
  readonly spec: PoolSpec | null
}

/** guard: pool.ver. The same pool when the position tells nothing new. */
export function poolAfter(stored: StoredPool | undefined, position: PoolPosition, spec: PoolSpec | null): StoredPool {
  if (stored === undefined) return { ...position, spec }
  const known = stored.spec ?? spec
  if (position.version > stored.version) return { ...position, spec: known }
  return known === stored.spec ? stored : { ...stored, spec: known }
}
