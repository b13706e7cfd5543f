/**
 * Placement as a pure function: a snapshot of what waits and of what hosts offer, to a list of choices.
 *
 * Filter: region, driver as proved by the host's probe, template present, lease not lost, not cordoned, room. Score: not the host where the last
 * attempt failed, then one whose pool has a unit of the sandbox's key, then packing (the least room left over), then the host's id, so that equal
 * snapshots give equal plans. Room taken by one choice counts for the next. What would fit if pools held less makes them smaller, and waits: a unit that
 * was given up is room only once its host has acknowledged it. A choice is only a proposal: the transaction that reserves checks generation, liveness and
 * room again (place.*, claim.*).
 */
import type { Amounts } from '@sandglass/contract'
import { amountsText, type ExactAmounts, exactAmounts, fitsIn, grouped, minus, publicAmounts } from '../amounts.ts'
import { HostRoom, type PoolUnits } from './room.ts'

export type PendingSandbox = {
  readonly id: string
  readonly generation: number
  readonly region: string
  readonly driver: string
  readonly templateDigest: string
  readonly need: ExactAmounts
  /** Where the last attempt failed. */
  readonly avoidHostId: string | null
  readonly unschedulableReason: string | null
  /** The pool whose members could become it. */
  readonly poolKey: string | null
}

export type HostOffer = {
  readonly id: string
  readonly name: string
  readonly region: string
  readonly epoch: number
  /** Drivers that its probe proved. */
  readonly drivers: readonly string[]
  readonly templateDigests: readonly string[]
  readonly capacity: ExactAmounts
  readonly reserved: ExactAmounts
  readonly cordoned: boolean
  /** No renewal for a lease. */
  readonly lost: boolean
}

export type Placement =
  | {
      readonly kind: 'place'
      readonly sandboxId: string
      readonly generation: number
      readonly hostId: string
      readonly epoch: number
      readonly need: ExactAmounts
      /** The pool that a unit is taken of; null: none is. */
      readonly poolKey: string | null
    }
  | { readonly kind: 'wait'; readonly sandboxId: string; readonly generation: number; readonly reason: string }

export type PlacementPlan = {
  /** One for each that is pending, in the same order. */
  readonly choices: readonly Placement[]
  /** Pools that hold room which a waiting sandbox needs. */
  readonly shrinks: readonly { readonly pool: PoolUnits; readonly target: number }[]
}

type Candidate = { readonly host: HostOffer; readonly room: HostRoom }

/** @param pending in the order in which they are to be served */
export function planPlacement(pending: readonly PendingSandbox[], hosts: readonly HostOffer[], pools: readonly PoolUnits[]): PlacementPlan {
  const candidates = hosts.map((host): Candidate => ({ host, room: new HostRoom(host, poolsOf(host, pools)) }))
  const choices = pending.map((sandbox) => choose(sandbox, candidates))
  return { choices, shrinks: candidates.flatMap(({ room }) => room.lowered()) }
}

const poolsOf = (host: HostOffer, pools: readonly PoolUnits[]): PoolUnits[] => pools.filter((pool) => pool.hostId === host.id)

function choose(sandbox: PendingSandbox, candidates: readonly Candidate[]): Placement {
  const { id: sandboxId, generation, need, poolKey } = sandbox
  const suited: Candidate[] = []
  const held: Candidate[] = []
  const tally = new Map<Refusal, number>()
  for (const candidate of candidates) {
    const refusal = refusalOf(sandbox, candidate)
    if (refusal === undefined) suited.push(candidate)
    if (refusal === 'held_by_pools') held.push(candidate)
    if (refusal !== undefined) tally.set(refusal, (tally.get(refusal) ?? 0) + 1)
  }
  const chosen = best(sandbox, suited)
  if (chosen === undefined) {
    const giving = best(sandbox, held)
    giving?.room.promise(need, poolKey)
    return { kind: 'wait', sandboxId, generation, reason: giving === undefined ? waitReason(sandbox, tally) : shrinkReason(sandbox, giving.host) }
  }
  const { host, room } = chosen
  const place = { kind: 'place', sandboxId, generation, hostId: host.id, epoch: host.epoch, need } as const
  if (poolKey !== null && room.hasUnit(poolKey, need)) {
    room.takeUnit(poolKey, need)
    return { ...place, poolKey }
  }
  room.take(need)
  return { ...place, poolKey: null }
}

/** In the order of the filter: the first that holds is the one that is told. */
const REFUSALS = ['other_region', 'lost', 'cordoned', 'driver_not_proved', 'template_absent', 'held_by_pools', 'no_room'] as const
type Refusal = (typeof REFUSALS)[number]

function refusalOf(sandbox: PendingSandbox, { host, room }: Candidate): Refusal | undefined {
  if (host.region !== sandbox.region) return 'other_region'
  if (host.lost) return 'lost'
  if (host.cordoned) return 'cordoned'
  if (!host.drivers.includes(sandbox.driver)) return 'driver_not_proved'
  if (!host.templateDigests.includes(sandbox.templateDigest)) return 'template_absent'
  if (room.hasUnit(sandbox.poolKey, sandbox.need) || room.fits(sandbox.need)) return undefined
  return room.fitsWithoutPools(sandbox.need) ? 'held_by_pools' : 'no_room'
}

/** The first in order, without sorting what is many. */
const best = (sandbox: PendingSandbox, candidates: readonly Candidate[]): Candidate | undefined =>
  candidates.reduce<Candidate | undefined>((first, next) => (first === undefined || compare(sandbox, next, first) < 0 ? next : first), undefined)

function compare(sandbox: PendingSandbox, a: Candidate, b: Candidate): number {
  const avoided = Number(a.host.id === sandbox.avoidHostId) - Number(b.host.id === sandbox.avoidHostId)
  if (avoided !== 0) return avoided
  const cold = Number(b.room.hasUnit(sandbox.poolKey, sandbox.need)) - Number(a.room.hasUnit(sandbox.poolKey, sandbox.need))
  if (cold !== 0) return cold
  const packed = roomLeft(sandbox, a) - roomLeft(sandbox, b)
  if (packed !== 0) return packed
  return a.host.id < b.host.id ? -1 : 1
}

/** The smallest share of a resource that stays free; packing prefers the host where it is least. */
function roomLeft(sandbox: PendingSandbox, { host, room }: Candidate): number {
  const left = minus(room.free, sandbox.need)
  const share = (amount: number, of: number): number => (of === 0 ? 0 : amount / of)
  return Math.min(share(left.vcpuMilli, host.capacity.vcpuMilli), share(left.memoryMb, host.capacity.memoryMb), share(left.diskGb, host.capacity.diskGb))
}

const EXPLANATIONS: Readonly<Record<Refusal, string>> = {
  other_region: 'in another region',
  lost: 'not heard of for a lease',
  cordoned: 'cordoned',
  driver_not_proved: 'without a proof of the isolation',
  template_absent: 'without the template',
  held_by_pools: 'with idle pool members in the room',
  no_room: 'full',
}

/** A code, then a sentence. */
function waitReason(sandbox: PendingSandbox, tally: ReadonlyMap<Refusal, number>): string {
  if (tally.size === 0) return 'no_host: no host has registered yet'
  const parts = REFUSALS.flatMap((refusal) => {
    const count = tally.get(refusal)
    return count === undefined ? [] : [`${count} ${count === 1 ? 'host' : 'hosts'} ${EXPLANATIONS[refusal]}`]
  })
  const code = tally.has('no_room') ? 'no_capacity' : 'no_suitable_host'
  return `${code}: needs ${amountsText(publicAmounts(sandbox.need))}; ${parts.join(', ')}`
}

function shrinkReason(sandbox: PendingSandbox, host: HostOffer): string {
  return `pool_shrinking: needs ${amountsText(publicAmounts(sandbox.need))}; idle pool members of ${host.name} hold the room and are being ended`
}

/** @returns a sentence for a request that no known host could hold even if it were empty, or undefined when one could, or when none is known */
export function neverFits(need: Amounts, hosts: readonly Pick<HostOffer, 'name' | 'capacity'>[]): string | undefined {
  if (hosts.length === 0) return undefined
  const exact = exactAmounts(need)
  if (hosts.some((host) => fitsIn(exact, host.capacity))) return undefined
  const largest = (of: (amounts: ExactAmounts) => number) => hosts.reduce((best, host) => (of(host.capacity) > of(best.capacity) ? host : best))
  const resources = [
    { of: (amounts: ExactAmounts) => amounts.memoryMb, unit: 'MB of memory', short: 'MB', scale: 1 },
    { of: (amounts: ExactAmounts) => amounts.vcpuMilli, unit: 'vCPU', short: 'vCPU', scale: 1_000 },
    { of: (amounts: ExactAmounts) => amounts.diskGb, unit: 'GB of disk', short: 'GB', scale: 1 },
  ]
  for (const { of, unit, short, scale } of resources) {
    const host = largest(of)
    if (of(exact) > of(host.capacity)) {
      return `no host can ever fit ${grouped(of(exact) / scale)} ${unit} (largest: ${grouped(of(host.capacity) / scale)} ${short} on ${host.name}).`
    }
  }
  return `no host can ever fit ${amountsText(need)} together.`
}
