/**
 * Placement as a pure function: a snapshot of what waits and of what hosts offer, to a list of choices (fleet-rooms.ts makes each).
 *
 * A choice is only a proposal: the transaction that reserves checks generation, liveness and room again (place.*, claim.*).
 */
import type { ExactAmounts } from '../amounts.ts'
import { FleetRooms, type FleetSnapshot, type PlacementRules } from './fleet-rooms.ts'
import type { PoolUnits } from './room.ts'

export type PendingSandbox = {
  readonly id: string
  readonly tenantId: string
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
  /** It ran before and is wanted again: it may use the room that is kept for the loss of a host. */
  readonly recovers: boolean
  /** It has waited so long that room which comes free is kept for it. */
  readonly isAged: boolean
}

export type HostOffer = {
  readonly id: string
  readonly name: string
  readonly region: string
  /** Labels `zone` (what fails together) and `class` (what is alike); null without one. */
  readonly zone: string | null
  readonly hostClass: string | null
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

export type Place = {
  readonly kind: 'place'
  readonly sandboxId: string
  readonly generation: number
  readonly hostId: string
  readonly epoch: number
  readonly need: ExactAmounts
  /** The pool that a unit is taken of; null: none is. */
  readonly poolKey: string | null
}

export type Wait = { readonly kind: 'wait'; readonly sandboxId: string; readonly generation: number; readonly reason: string }
export type Placement = Place | Wait

export type PlacementPlan = {
  /** One for each that is pending, in the same order. */
  readonly choices: readonly Placement[]
  /** Pools that hold room which a waiting sandbox needs. */
  readonly shrinks: readonly { readonly pool: PoolUnits; readonly target: number }[]
}

/**
 * @param pending in the order in which they are to be served
 * @param kept others that room is kept for, before any of these gets some
 */
export function planPlacement(
  pending: readonly PendingSandbox[],
  hosts: readonly HostOffer[],
  pools: readonly PoolUnits[],
  more: Omit<FleetSnapshot, 'hosts' | 'pools'> & { readonly rules?: PlacementRules; readonly kept?: readonly PendingSandbox[] } = {},
): PlacementPlan {
  const rooms = new FleetRooms({ ...more, hosts, pools }, more.rules)
  for (const sandbox of more.kept ?? []) rooms.choose(sandbox)
  const choices = pending.map((sandbox) => rooms.choose(sandbox))
  return { choices, shrinks: rooms.lowered() }
}
