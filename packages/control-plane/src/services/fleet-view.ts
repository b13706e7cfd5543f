/**
 * Hosts and pools as they were a moment ago, for the placement that a create tries in its own transaction. What is chosen from it is only a proposal, so
 * that an old view costs a refusal by the guards and a look of the placement reconciler, never a wrong placement.
 *
 * What was placed from a view is taken off it. It is not used while anything waits for room: then the reconciler decides whose turn it is.
 */

import { minus, plus } from '../domain/amounts.ts'
import { type HostOffer, type PendingSandbox, planPlacement } from '../domain/placement/plan.ts'
import type { PoolUnits } from '../domain/placement/room.ts'
import type { Queryable } from '../store/database.ts'
import { hostOffers } from '../store/hosts.ts'
import { isAnythingWaitingForRoom, listPools } from '../store/pools.ts'
import type { Place } from './place-sandbox.ts'

const MAX_AGE_MS = 100

export type Fleet = { readonly hosts: readonly HostOffer[]; readonly pools: readonly PoolUnits[]; readonly waiting: boolean }

export class FleetView {
  readonly #leaseMs: number
  readonly #monotonicMs: () => number
  #known: { readonly fleet: Fleet; readonly readAtMs: number } | undefined

  constructor(options: { leaseMs: number; monotonicMs: () => number }) {
    this.#leaseMs = options.leaseMs
    this.#monotonicMs = options.monotonicMs
  }

  /** Something came free, or a host joined. */
  forget(): void {
    this.#known = undefined
  }

  async read(db: Queryable): Promise<Fleet> {
    const known = this.#known
    if (known !== undefined && this.#monotonicMs() - known.readAtMs < MAX_AGE_MS) return known.fleet
    return await this.readAnew(db)
  }

  async readAnew(db: Queryable): Promise<Fleet> {
    const readAtMs = this.#monotonicMs()
    const [hosts, pools, waiting] = await Promise.all([hostOffers(db, this.#leaseMs), listPools(db, 'held'), isAnythingWaitingForRoom(db)])
    const fleet = { hosts, pools, waiting }
    this.#known = { fleet, readAtMs }
    return fleet
  }

  /** @returns where it could go at once; undefined: the reconciler sees to it */
  choose(sandbox: PendingSandbox): Place | undefined {
    const fleet = this.#known?.fleet
    if (fleet === undefined || fleet.waiting) return undefined
    const [choice] = planPlacement([sandbox], fleet.hosts, fleet.pools).choices
    if (choice?.kind !== 'place') return undefined
    this.#take(choice)
    return choice
  }

  #take({ hostId, poolKey, need }: Place): void {
    const known = this.#known
    if (known === undefined) return
    const { fleet, readAtMs } = known
    const pools = fleet.pools.map((pool) => (pool.hostId === hostId && pool.key === poolKey ? { ...pool, target: pool.target - 1, held: pool.held - 1 } : pool))
    const hosts = fleet.hosts.map((host) =>
      host.id === hostId ? { ...host, reserved: plus(host.reserved, poolKey === null ? need : minus(need, { ...need, vcpuMilli: 0 })) } : host,
    )
    this.#known = { fleet: { ...fleet, hosts, pools }, readAtMs }
  }
}
