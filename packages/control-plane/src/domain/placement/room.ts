/**
 * The room of one host while a plan is made: what is free, what pools hold, and what earlier choices of the same plan have taken of either.
 *
 * Pools hold memory and disk. A unit of the sandbox's own key is as good as room; units of other keys become room only when the host has acknowledged
 * that it keeps fewer members, so they are asked for and waited for.
 */
import type { PoolSpec } from '@sandglass/contract'
import { type ExactAmounts, fitsIn, minus, plus } from '../amounts.ts'
import { invariant } from '../invariant.ts'

/** One pool as it was read. */
export type PoolUnits = {
  readonly hostId: string
  readonly key: string
  readonly epoch: number
  readonly version: number
  readonly target: number
  readonly held: number
  /** What a member is; its text is what the key is the digest of. */
  readonly spec: PoolSpec
  readonly unit: ExactAmounts
}

type RoomOwner = { readonly epoch: number; readonly capacity: ExactAmounts; readonly reserved: ExactAmounts }

type Units = { readonly pool: PoolUnits; target: number; held: number; lowered: boolean }

const times = (unit: ExactAmounts, count: number): ExactAmounts => ({
  vcpuMilli: unit.vcpuMilli * count,
  memoryMb: unit.memoryMb * count,
  diskGb: unit.diskGb * count,
})

export class HostRoom {
  readonly #capacity: ExactAmounts
  readonly #pools: readonly Units[]
  #free: ExactAmounts
  #kept = false

  constructor(host: RoomOwner, pools: readonly PoolUnits[]) {
    this.#capacity = host.capacity
    // A pool of an earlier epoch holds nothing that could be claimed or given up: it is fenced.
    this.#pools = pools.filter((pool) => pool.epoch === host.epoch).map((pool) => ({ pool, target: pool.target, held: pool.held, lowered: false }))
    this.#free = minus(host.capacity, host.reserved)
  }

  /** Less than nothing on a host that keeps its room for one that has waited long. */
  get free(): ExactAmounts {
    return this.#free
  }

  fits(need: ExactAmounts): boolean {
    return fitsIn(need, this.#free)
  }

  /** A unit of this key is left, and the vCPU that a unit does not hold. */
  hasUnit(key: string | null, need: ExactAmounts): boolean {
    return (this.#unitsOf(key)?.target ?? 0) >= 1 && need.vcpuMilli <= this.#free.vcpuMilli
  }

  /** It would fit if pools gave up what they hold. */
  fitsWithoutPools(need: ExactAmounts): boolean {
    return (
      this.#pools.length > 0 &&
      fitsIn(
        need,
        this.#freeAnd((units) => units.held),
      )
    )
  }

  take(need: ExactAmounts): void {
    this.#free = minus(this.#free, need)
  }

  takeUnit(key: string, need: ExactAmounts): void {
    const units = this.#unitsOf(key)
    invariant(units !== undefined && units.target >= 1, `pool ${key} has no unit left`)
    units.target -= 1
    units.held -= 1
    this.take({ ...need, memoryMb: 0, diskGb: 0 })
  }

  /** Could it keep what comes free for this one? Not while it keeps it for another. */
  mayKeepFor(need: ExactAmounts): boolean {
    return !this.#kept && fitsIn(need, this.#capacity)
  }

  /** What comes free here is this one's: the rest of the plan finds so much less. */
  keepFor(need: ExactAmounts): void {
    this.#kept = true
    this.take(need)
  }

  /** Speaks for room that is not free yet, and lowers targets as far as that takes: of other keys first, the largest pool first. */
  promise(need: ExactAmounts, ownKey: string | null): void {
    this.take(need)
    const inOrder = this.#pools.toSorted(
      (a, b) => Number(a.pool.key === ownKey) - Number(b.pool.key === ownKey) || b.target - a.target || (a.pool.key < b.pool.key ? -1 : 1),
    )
    for (const units of inOrder) {
      while (units.target > 0 && !this.#enoughComesFree()) {
        units.target -= 1
        units.lowered = true
      }
    }
  }

  /** Pools that have to become smaller for what was promised. */
  lowered(): { readonly pool: PoolUnits; readonly target: number }[] {
    return this.#pools.filter((units) => units.lowered).map(({ pool, target }) => ({ pool, target }))
  }

  #enoughComesFree(): boolean {
    const coming = this.#freeAnd((units) => units.held - units.target)
    return coming.memoryMb >= 0 && coming.diskGb >= 0
  }

  #freeAnd(count: (units: Units) => number): ExactAmounts {
    return this.#pools.reduce((sum, units) => plus(sum, times(units.pool.unit, count(units))), this.#free)
  }

  #unitsOf(key: string | null): Units | undefined {
    return this.#pools.length === 0 ? undefined : this.#pools.find((units) => units.pool.key === key)
  }
}
