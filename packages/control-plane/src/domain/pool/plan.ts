/**
 * How many members each pool should have, as a pure function: a snapshot of hosts, pools and demand, to the pools that have to change.
 *
 * A key's target follows its demand: what arrives while a member is being replaced, with a margin, spread over the hosts that can run it and over their zones:
 * as many members as are wanted on the whole, so that a small demand keeps a few members on a few hosts and not one on each. It rises at once and falls as
 * the windows pass. Floors are the operator's and stand apart from demand. Above the floors, idle members may hold no more than a share of a
 * host's memory, and nothing grows while a sandbox waits for room. What was planned is only a proposal: the version of each pool and the room are checked
 * again where it is applied.
 */
import { LIMITS, type PoolSpec, poolKeyOf, type Resources } from '@sandglass/contract'
import { type ExactAmounts, exactAmounts, fitsIn, minus, publicAmounts } from '../amounts.ts'
import type { HostOffer } from '../placement/plan.ts'
import type { PoolUnits } from '../placement/room.ts'
import { poolSpec, type RuntimeTraits } from '../sandbox/runtime-spec.ts'

/** Creates by what a member of theirs would be. */
export type Demand = {
  readonly driver: string
  readonly template: { readonly name: string; readonly digest: string }
  readonly amounts: ExactAmounts
  readonly networkMode: RuntimeTraits['networkMode']
  /** In the last DEMAND.windowS and DEMAND.recentS seconds. */
  readonly arrivals: number
  readonly recent: number
}

/** Members that are kept without any demand. */
export type Floor = {
  readonly driver: string
  readonly template: { readonly name: string; readonly digest: string }
  readonly resources: Resources
  readonly count: number
}

export type PoolBounds = {
  /** Most members of one key on one host. */
  readonly ceiling: number
  /** Most of a host's memory that members above the floors may hold, with them. */
  readonly memoryShare: number
}

export const DEMAND = {
  windowS: 120,
  recentS: 10,
  /** Fewer creates in the window are no demand to prepare for. */
  arrivalsMin: 3,
  /** Until a claimed member is replaced. */
  refillS: 2,
  margin: 1.5,
} as const

/** A pool shrinks when at most this much of it is still wanted, so that it does not follow every wave. */
const KEPT_SHARE = 0.75

type Wish = { readonly key: string; readonly spec: PoolSpec; readonly floor: number; readonly perSecond: number }

export type PoolChange = {
  readonly hostId: string
  readonly key: string
  readonly spec: PoolSpec
  readonly epoch: number
  /** The version that the change is made from; 0 for a pool that never was. */
  readonly version: number
  readonly target: number
}

export type PoolSnapshot = {
  readonly hosts: readonly HostOffer[]
  readonly pools: readonly PoolUnits[]
  readonly demand: readonly Demand[]
  readonly floors: readonly Floor[]
  readonly bounds: PoolBounds
  /** A sandbox waits for room. */
  readonly waiting: boolean
}

export function planPools(snapshot: PoolSnapshot): PoolChange[] {
  const wishes = wishesOf(snapshot)
  const spread = new Map(wishes.map((wish) => [wish.key, spreadOf(snapshot.hosts, wish)]))
  const poolsOf = Map.groupBy(snapshot.pools, ({ hostId }) => hostId)
  return snapshot.hosts.filter((host) => !host.lost).flatMap((host) => planHost({ ...snapshot, pools: poolsOf.get(host.id) ?? [], spread }, host, wishes))
}

/** Floors first, then by demand. */
function wishesOf({ demand, floors }: PoolSnapshot): Wish[] {
  const wishes = new Map<string, Wish>()
  const add = (traits: RuntimeTraits, floor: number, perSecond: number): void => {
    const spec = poolSpec(traits)
    const key = poolKeyOf(spec)
    const known = wishes.get(key)
    wishes.set(key, { key, spec, floor: Math.max(floor, known?.floor ?? 0), perSecond: perSecond + (known?.perSecond ?? 0) })
  }
  for (const floor of floors) add({ ...floor, networkMode: 'none' }, floor.count, 0)
  for (const one of demand) {
    const floored = [...wishes.values()].some((wish) => wish.floor > 0 && wish.key === poolKeyOf(poolSpec(traitsOf(one))))
    if (floored || one.arrivals >= DEMAND.arrivalsMin) add(traitsOf(one), 0, Math.max(one.arrivals / DEMAND.windowS, one.recent / DEMAND.recentS))
  }
  return [...wishes.values()].toSorted((a, b) => b.floor - a.floor || b.perSecond - a.perSecond || (a.key < b.key ? -1 : 1))
}

const traitsOf = ({ driver, template, amounts, networkMode }: Demand): RuntimeTraits => ({ driver, template, resources: publicAmounts(amounts), networkMode })

/** `pools`: of the host; `spread`: by key and host, what of the demand is kept there. */
type HostSnapshot = PoolSnapshot & { readonly spread: ReadonlyMap<string, ReadonlyMap<string, number>> }

function planHost(snapshot: HostSnapshot, host: HostOffer, wishes: readonly Wish[]): PoolChange[] {
  // Pools of an earlier epoch are fenced first.
  const { pools } = snapshot
  if (pools.some((pool) => pool.epoch !== host.epoch)) return []
  const able = wishes.filter((wish) => canRun(host, wish.spec)).slice(0, LIMITS.hostPools)
  const shrinks = pools.flatMap((pool) => shrink(snapshot, host, pool, able))
  return snapshot.waiting ? shrinks : [...shrinks, ...grows(snapshot, host, pools, able)]
}

const canRun = (host: HostOffer, spec: PoolSpec): boolean =>
  !host.cordoned && host.drivers.includes(spec.driver) && host.templateDigests.includes(spec.template.digest)

/**
 * What of the demand each host keeps: the same on each, and what does not come out even on the first ones of an order that goes from zone to zone and that is
 * another one for each key.
 */
function spreadOf(hosts: readonly HostOffer[], wish: Wish): Map<string, number> {
  const able = hosts.filter((host) => !host.lost && canRun(host, wish.spec))
  const inZone = new Map<string, number>()
  const order = able
    .map((host) => ({ host, chance: poolKeyChance(wish.key, host.id) }))
    .toSorted((a, b) => a.chance - b.chance || (a.host.id < b.host.id ? -1 : 1))
    .map(({ host, chance }) => {
      const round = inZone.get(host.zone ?? '') ?? 0
      inZone.set(host.zone ?? '', round + 1)
      return { host, chance, round }
    })
    .toSorted((a, b) => a.round - b.round || a.chance - b.chance || (a.host.id < b.host.id ? -1 : 1))
  const members = Math.ceil(wish.perSecond * DEMAND.refillS * DEMAND.margin)
  return new Map(order.map(({ host }, turn) => [host.id, Math.floor(members / order.length) + (turn < members % order.length ? 1 : 0)]))
}

/** A number below 2^32 that is the same for the same key and host, and otherwise as good as any (FNV-1a). */
function poolKeyChance(key: string, hostId: string): number {
  let hash = 0x811c9dc5
  for (const character of key + hostId) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193)
  return hash >>> 0
}

/** What demand and floor ask for, before room is looked at. */
const wanted = ({ bounds, spread }: HostSnapshot, host: HostOffer, wish: Wish): number =>
  Math.min(Math.max(wish.floor, Math.min(spread.get(wish.key)?.get(host.id) ?? 0, bounds.ceiling)), LIMITS.poolMembers)

function shrink(snapshot: HostSnapshot, host: HostOffer, pool: PoolUnits, able: readonly Wish[]): PoolChange[] {
  const wish = able.find((one) => one.key === pool.key)
  const target = wish === undefined ? 0 : wanted(snapshot, host, wish)
  if (pool.target === 0 || target >= pool.target || (target > pool.target * KEPT_SHARE && target > 0)) return []
  return [{ hostId: host.id, key: pool.key, spec: pool.spec, epoch: pool.epoch, version: pool.version, target }]
}

function grows(snapshot: HostSnapshot, host: HostOffer, pools: readonly PoolUnits[], able: readonly Wish[]): PoolChange[] {
  let free = minus(host.capacity, host.reserved)
  let idleMb = pools.reduce((sum, pool) => sum + pool.held * pool.unit.memoryMb, 0)
  const idleMaxMb = host.capacity.memoryMb * snapshot.bounds.memoryShare
  return able.flatMap((wish): PoolChange[] => {
    const pool = pools.find((one) => one.key === wish.key)
    const before = pool?.target ?? 0
    const unit = { ...exactAmounts(wish.spec.resources), vcpuMilli: 0 }
    // What was shrunk away and not acknowledged yet is still held: it is taken back without new room.
    let held = pool?.held ?? 0
    let target = before
    const want = wanted(snapshot, host, wish)
    while (target < want) {
      if (target + 1 > held) {
        if (!fitsIn(unit, free) || (target + 1 > wish.floor && idleMb + unit.memoryMb > idleMaxMb)) break
        free = minus(free, unit)
        idleMb += unit.memoryMb
        held += 1
      }
      target += 1
    }
    return target === before ? [] : [{ hostId: host.id, key: wish.key, spec: wish.spec, epoch: host.epoch, version: pool?.version ?? 0, target }]
  })
}
