/**
 * Hosts and pools as they were a moment ago, for the placement that a create tries in its own transaction. What is chosen from it is only a proposal, so
 * that an old view costs a refusal by the guards and a look of the placement reconciler, never a wrong placement.
 *
 * What was placed from a view is taken off it. It is not used while anything waits for room: then the reconciler decides whose turn it is. Where a tenant's
 * sandboxes are changes little and only makes one host better than another: that is read less often.
 */
import { FleetRooms, type PlacementRules, type Spread } from '../domain/placement/fleet-rooms.ts'
import type { HostOffer, PendingSandbox, Place } from '../domain/placement/plan.ts'
import { readSpread } from '../store/assignments.ts'
import type { Queryable } from '../store/database.ts'
import { hostOffers } from '../store/hosts.ts'
import { isAnythingWaitingForRoom, listPools } from '../store/pools.ts'

const MAX_AGE_MS = 100
const SPREAD_AGE_MS = 2_000
/** Past it those that were read first are forgotten. */
const SPREADS_KEPT = 1_000

export type Fleet = { readonly hosts: readonly HostOffer[]; readonly rooms: FleetRooms; readonly waiting: boolean }

export type FleetViewOptions = {
  readonly leaseMs: number
  readonly monotonicMs: () => number
  readonly rules: PlacementRules
  /** An index below `among`. */
  readonly pick: (among: number) => number
}

export class FleetView {
  readonly #options: FleetViewOptions
  readonly #spreads = new Map<string, { readonly spread: Spread; readonly readAtMs: number }>()
  #known: { readonly fleet: Fleet; readonly readAtMs: number } | undefined

  constructor(options: FleetViewOptions) {
    this.#options = options
  }

  /** Something came free, or a host joined. */
  forget(): void {
    this.#known = undefined
  }

  async read(db: Queryable): Promise<Fleet> {
    const known = this.#known
    if (known !== undefined && this.#options.monotonicMs() - known.readAtMs < MAX_AGE_MS) return known.fleet
    return await this.readAnew(db)
  }

  async readAnew(db: Queryable): Promise<Fleet> {
    const { leaseMs, monotonicMs, rules, pick } = this.#options
    const readAtMs = monotonicMs()
    const [hosts, pools, waiting] = await Promise.all([hostOffers(db, leaseMs), listPools(db, 'held'), isAnythingWaitingForRoom(db)])
    const spread = new Map([...this.#spreads].map(([tenantId, known]) => [tenantId, known.spread]))
    const fleet = { hosts, rooms: new FleetRooms({ hosts, pools, spread, pick }, rules), waiting }
    this.#known = { fleet, readAtMs }
    return fleet
  }

  /** Where the tenant's sandboxes are, unless that is known or makes no difference. */
  async readSpread(db: Queryable, tenantId: string): Promise<void> {
    if (this.#known?.fleet.hosts.length === 1) return
    const readAtMs = this.#options.monotonicMs()
    const known = this.#spreads.get(tenantId)
    if (known !== undefined && readAtMs - known.readAtMs < SPREAD_AGE_MS) return
    const spread = (await readSpread(db, [tenantId])).get(tenantId) ?? new Map()
    this.#spreads.delete(tenantId)
    this.#spreads.set(tenantId, { spread, readAtMs })
    this.#known?.fleet.rooms.setSpread(tenantId, spread)
    const [oldest] = this.#spreads.keys()
    if (this.#spreads.size > SPREADS_KEPT && oldest !== undefined) this.#spreads.delete(oldest)
  }

  /** @returns where it could go at once; undefined: the reconciler sees to it */
  choose(sandbox: PendingSandbox): Place | undefined {
    const fleet = this.#known?.fleet
    return fleet === undefined || fleet.waiting ? undefined : fleet.rooms.place(sandbox)
  }
}
