/**
 * The fleet while choices are made of it, one after the other: room that one choice takes counts for the next.
 *
 * Filter: region, driver as proved by the host's probe, template present, lease not lost, not cordoned, room; and, where the operator wants it, room for
 * what the largest host of a class holds, which only what ran before may use. Score (rankOf): not the host where the last attempt failed, one whose pool
 * has a unit of the sandbox's key, this scheduler's part of the fleet where others place too, packing in coarse steps, then the zone and the host with the fewest of the tenant's sandboxes, then packing exactly.
 * Of the near-best one is picked at random, so that schedulers which see the same fleet at the same time do not all want the same host; without a pick, the
 * best one, so that equal snapshots give equal choices. A template that is present is cached: hosts start only from templates that they have, so there is no
 * score for it.
 *
 * What would fit if pools held less makes them smaller, and waits. One that has waited long keeps a host: what comes free there is not given to those behind
 * it, or small ones that fit everywhere could keep a large one out for ever. At most an eighth of the fleet is kept so.
 *
 * Hosts are sorted out by region, driver and template once, not for each sandbox: what is left to a choice is arithmetic over those that can run it.
 */
import { fitsIn, minus, plus, ZERO } from '../amounts.ts'
import type { HostOffer, PendingSandbox, Place, Placement } from './plan.ts'
import { countRefusal, keptReason, type Refusal, shrinkReason, type Tally, waitReason } from './refusal.ts'
import { HostRoom, type PoolUnits } from './room.ts'

export type PlacementRules = {
  /** In each class of a region of two hosts and more, what the largest one offers stays free for what a lost host held. */
  readonly hostLossHeadroom: boolean
}

export const NO_RULES: PlacementRules = { hostLossHeadroom: false }

/** Live sandboxes of one tenant by host. */
export type Spread = ReadonlyMap<string, number>

export type FleetSnapshot = {
  readonly hosts: readonly HostOffer[]
  readonly pools: readonly PoolUnits[]
  /** By tenant; a tenant that is not named has none. */
  readonly spread?: ReadonlyMap<string, Spread>
  /** An index below `among`. */
  readonly pick?: (among: number) => number
  /** So many schedulers place at the same time: each prefers a part of the fleet, picked anew for each snapshot, before it packs. Default: it is alone. */
  readonly schedulers?: number
}

/** Hosts of one region and class: what is kept for the loss of one of them is kept among them. */
type Group = { readonly hosts: number; readonly most: HostOffer['capacity']; free: HostOffer['capacity'] }
/** `index` among all, `zone` among zones; `part`: of the fleet, as many parts as there are schedulers. */
type Candidate = {
  readonly host: HostOffer
  readonly room: HostRoom
  readonly group: Group
  readonly index: number
  readonly zone: number
  readonly part: number
}
/** Those that could run something, and why the others cannot. */
type Able = { readonly candidates: readonly Candidate[]; readonly others: ReadonlyMap<Refusal, number> }
/** Live sandboxes of one tenant, by index of host and of zone: a choice looks at every host, and a lookup by id would be most of what it costs. */
type Held = { readonly hosts: Uint32Array; readonly zones: Uint32Array }

const NEAR_BEST = 8
/** Near-best are no more than an eighth of what suits: a small fleet is packed exactly. */
const NEAR_SHARE = 8
const KEPT_SHARE = 8
const PACKING_STEPS = 8

export class FleetRooms {
  readonly #rules: PlacementRules
  readonly #candidates: readonly Candidate[]
  readonly #able = new Map<string, Able>()
  readonly #held = new Map<string, Held>()
  readonly #byHost: ReadonlyMap<string, Candidate>
  readonly #pick: (among: number) => number
  readonly #ownPart: number
  readonly #zones: number
  #mayKeep: number

  constructor({ hosts, pools, spread, pick, schedulers = 1 }: FleetSnapshot, rules: PlacementRules = NO_RULES) {
    this.#rules = rules
    this.#pick = pick ?? (() => 0)
    this.#mayKeep = Math.ceil(hosts.length / KEPT_SHARE)
    this.#ownPart = schedulers > 1 ? this.#pick(schedulers) : 0
    const poolsOf = Map.groupBy(pools, (pool) => pool.hostId)
    const groups = groupsOf(hosts)
    const zones = [...new Set(hosts.map(({ zone }) => zone))]
    this.#zones = zones.length
    this.#candidates = hosts
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))
      .map((host, index) => {
        const room = new HostRoom(host, poolsOf.get(host.id) ?? [])
        return { host, room, group: groups.get(groupKey(host)) ?? NO_GROUP, index, zone: zones.indexOf(host.zone), part: index % schedulers }
      })
    this.#byHost = new Map(this.#candidates.map((candidate) => [candidate.host.id, candidate]))
    for (const [tenantId, counts] of spread ?? []) this.setSpread(tenantId, counts)
  }

  /** Where the tenant's sandboxes are; what is placed from here is counted on. */
  setSpread(tenantId: string, spread: Spread): void {
    const held: Held = { hosts: new Uint32Array(this.#candidates.length), zones: new Uint32Array(this.#zones) }
    for (const [hostId, live] of spread) {
      const candidate = this.#byHost.get(hostId)
      if (candidate !== undefined) count(held, candidate, live)
    }
    this.#held.set(tenantId, held)
  }

  /** @returns undefined when no host has room for it at once; takes nothing then */
  place(sandbox: PendingSandbox): Place | undefined {
    const chosen = this.#best(sandbox)
    return chosen && this.#take(sandbox, chosen)
  }

  choose(sandbox: PendingSandbox): Placement {
    const placed = this.place(sandbox)
    if (placed !== undefined) return placed
    const { id: sandboxId, generation, need, poolKey } = sandbox
    const { candidates, others } = this.#ableFor(sandbox)
    const tally: Tally = new Map(others)
    const giving: Candidate[] = []
    const full: Candidate[] = []
    for (const candidate of candidates) {
      const refusal = this.#refusalOf(sandbox, candidate)
      countRefusal(tally, refusal)
      if (refusal === 'held_by_pools') giving.push(candidate)
      if (refusal === 'no_room' && candidate.room.mayKeepFor(need)) full.push(candidate)
    }
    const wait = { kind: 'wait', sandboxId, generation } as const
    const giver = best(giving, (candidate) => this.#rankOf(sandbox, candidate))
    if (giver !== undefined) {
      giver.room.promise(need, poolKey)
      return { ...wait, reason: shrinkReason(need, giver.host) }
    }
    const keeper = sandbox.isAged && this.#mayKeep > 0 ? best(full, (candidate) => -leftShare(sandbox, candidate)) : undefined
    if (keeper === undefined) return { ...wait, reason: waitReason(need, tally) }
    this.#mayKeep -= 1
    keeper.room.keepFor(need)
    return { ...wait, reason: keptReason(need, tally, keeper.host) }
  }

  /** Pools that have to become smaller for what was promised. */
  lowered(): { readonly pool: PoolUnits; readonly target: number }[] {
    return this.#candidates.flatMap(({ room }) => room.lowered())
  }

  /** The best one, or one of the near-best of the same tier. Looks at each once and sorts nothing. */
  #best(sandbox: PendingSandbox): Candidate | undefined {
    const { candidates } = this.#ableFor(sandbox)
    const most = Math.min(NEAR_BEST, Math.ceil(candidates.length / NEAR_SHARE))
    const near: { readonly candidate: Candidate; readonly rank: number }[] = []
    for (const candidate of candidates) {
      if (!this.#suits(sandbox, candidate)) continue
      const rank = this.#rankOf(sandbox, candidate)
      const last = near.at(-1)
      if (near.length === most && last !== undefined && rank >= last.rank) continue
      let at = near.length
      while (at > 0 && (near[at - 1]?.rank ?? 0) > rank) at -= 1
      near.splice(at, 0, { candidate, rank })
      if (near.length > most) near.pop()
    }
    const [first] = near
    if (first === undefined) return undefined
    const tier = near.filter(({ rank }) => tierOf(rank) === tierOf(first.rank))
    return (tier.length === 1 ? first : (tier[this.#pick(tier.length)] ?? first)).candidate
  }

  #suits(sandbox: PendingSandbox, { room, group }: Candidate): boolean {
    const { need, poolKey } = sandbox
    return (room.fits(need) || room.hasUnit(poolKey, need)) && !this.#keepsHeadroom(sandbox, group)
  }

  #refusalOf(sandbox: PendingSandbox, { room, group }: Candidate): Refusal {
    if (room.fits(sandbox.need) && this.#keepsHeadroom(sandbox, group)) return 'keeps_headroom'
    return room.fitsWithoutPools(sandbox.need) ? 'held_by_pools' : 'no_room'
  }

  #keepsHeadroom({ need, recovers }: PendingSandbox, group: Group): boolean {
    return this.#rules.hostLossHeadroom && !recovers && group.hosts > 1 && !fitsIn(plus(need, group.most), group.free)
  }

  /** Lower is better, in this order: tier (failed here, no unit, another's part), room left in steps, the tenant's in the zone, on the host, room left. */
  #rankOf(sandbox: PendingSandbox, candidate: Candidate): number {
    const { host, room, part, index, zone } = candidate
    const tier = (host.id === sandbox.avoidHostId ? 4 : 0) + (room.hasUnit(sandbox.poolKey, sandbox.need) ? 0 : 2) + (part === this.#ownPart ? 0 : 1)
    const left = Math.max(0, leftShare(sandbox, candidate))
    const held = this.#held.get(sandbox.tenantId)
    const inZone = Math.min(MOST_COUNTED, held?.zones[zone] ?? 0)
    const onHost = Math.min(MOST_COUNTED, held?.hosts[index] ?? 0)
    return tier * TIER + Math.floor(left * PACKING_STEPS) * STEP + inZone * IN_ZONE + onHost * ON_HOST + left
  }

  #take({ id: sandboxId, tenantId, generation, need, poolKey }: PendingSandbox, candidate: Candidate): Place {
    const { host, room, group } = candidate
    const place = { kind: 'place', sandboxId, generation, hostId: host.id, epoch: host.epoch, need } as const
    const held = this.#held.get(tenantId)
    if (held !== undefined) count(held, candidate, 1)
    if (poolKey !== null && room.hasUnit(poolKey, need)) {
      room.takeUnit(poolKey, need)
      group.free = minus(group.free, { ...need, memoryMb: 0, diskGb: 0 })
      return { ...place, poolKey }
    }
    room.take(need)
    group.free = minus(group.free, need)
    return { ...place, poolKey: null }
  }

  #ableFor({ region, driver, templateDigest }: PendingSandbox): Able {
    const kind = `${region} ${driver} ${templateDigest}`
    const known = this.#able.get(kind)
    if (known !== undefined) return known
    const candidates: Candidate[] = []
    const others: Tally = new Map()
    for (const candidate of this.#candidates) {
      const refusal = unable(candidate.host, region, driver, templateDigest)
      if (refusal === undefined) candidates.push(candidate)
      else countRefusal(others, refusal)
    }
    const able = { candidates, others }
    this.#able.set(kind, able)
    return able
  }
}

/** Digits of a rank, each below the next: the whole stays far from where a number loses its fraction. */
const ON_HOST = 2
const MOST_COUNTED = 9_999
const IN_ZONE = ON_HOST * (MOST_COUNTED + 1)
const STEP = IN_ZONE * (MOST_COUNTED + 1)
const TIER = STEP * (PACKING_STEPS + 1)
const tierOf = (rank: number): number => Math.floor(rank / TIER)

function unable(host: HostOffer, region: string, driver: string, templateDigest: string): Refusal | undefined {
  if (host.region !== region) return 'other_region'
  if (host.lost) return 'lost'
  if (host.cordoned) return 'cordoned'
  if (!host.drivers.includes(driver)) return 'driver_not_proved'
  if (!host.templateDigests.includes(templateDigest)) return 'template_absent'
  return undefined
}

/** The smallest share of a resource that stays free. */
function leftShare({ need }: PendingSandbox, { host, room }: Candidate): number {
  const { free } = room
  return Math.min(
    share(free.vcpuMilli - need.vcpuMilli, host.capacity.vcpuMilli),
    share(free.memoryMb - need.memoryMb, host.capacity.memoryMb),
    share(free.diskGb - need.diskGb, host.capacity.diskGb),
  )
}

function best(candidates: readonly Candidate[], rankOf: (candidate: Candidate) => number): Candidate | undefined {
  let first: Candidate | undefined
  let least = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    const rank = rankOf(candidate)
    if (rank < least) {
      least = rank
      first = candidate
    }
  }
  return first
}

function count({ hosts, zones }: Held, { index, zone }: Candidate, more: number): void {
  hosts[index] = (hosts[index] ?? 0) + more
  zones[zone] = (zones[zone] ?? 0) + more
}

const share = (amount: number, of: number): number => (of === 0 ? 0 : amount / of)

const NO_GROUP: Group = { hosts: 0, most: ZERO, free: ZERO }
const groupKey = ({ region, hostClass }: HostOffer): string => `${region} ${hostClass ?? ''}`

/** Of hosts that take work: what is lost or cordoned has no room for anybody. */
function groupsOf(hosts: readonly HostOffer[]): Map<string, Group> {
  const groups = new Map<string, Group>()
  for (const host of hosts) {
    if (host.lost || host.cordoned) continue
    const group = groups.get(groupKey(host)) ?? NO_GROUP
    groups.set(groupKey(host), {
      hosts: group.hosts + 1,
      most: {
        vcpuMilli: Math.max(group.most.vcpuMilli, host.capacity.vcpuMilli),
        memoryMb: Math.max(group.most.memoryMb, host.capacity.memoryMb),
        diskGb: Math.max(group.most.diskGb, host.capacity.diskGb),
      },
      free: plus(group.free, minus(host.capacity, host.reserved)),
    })
  }
  return groups
}
