/** Why a host does not take a sandbox, and the sentence that its owner reads of all of them. */
import { type Amounts, LIMITS } from '@sandglass/contract'
import { amountsText, type ExactAmounts, exactAmounts, fitsIn, grouped, publicAmounts } from '../amounts.ts'
import type { HostOffer } from './plan.ts'

/** In the order of the filter: the first that holds is the one that is told. */
const REFUSALS = ['other_region', 'lost', 'cordoned', 'driver_not_proved', 'template_absent', 'keeps_headroom', 'held_by_pools', 'no_room'] as const
export type Refusal = (typeof REFUSALS)[number]
export type Tally = Map<Refusal, number>

export const countRefusal = (tally: Tally, refusal: Refusal): void => void tally.set(refusal, (tally.get(refusal) ?? 0) + 1)

const EXPLANATIONS: Readonly<Record<Refusal, string>> = {
  other_region: 'in another region',
  lost: 'not heard of for a lease',
  cordoned: 'cordoned',
  driver_not_proved: 'without a proof of the isolation',
  template_absent: 'without the template',
  keeps_headroom: 'of a class that keeps room for the loss of its largest host',
  held_by_pools: 'with idle pool members in the room',
  no_room: 'full',
}

/** A code, then a sentence. */
export function waitReason(need: ExactAmounts, tally: ReadonlyMap<Refusal, number>): string {
  if (tally.size === 0) return 'no_host: no host has registered yet'
  const parts = REFUSALS.flatMap((refusal) => {
    const hosts = tally.get(refusal)
    return hosts === undefined ? [] : [`${hosts} ${hosts === 1 ? 'host' : 'hosts'} ${EXPLANATIONS[refusal]}`]
  })
  const code = tally.has('no_room') || tally.has('keeps_headroom') ? 'no_capacity' : 'no_suitable_host'
  return `${code}: needs ${amountsText(publicAmounts(need))}; ${parts.join(', ')}`
}

export const shrinkReason = (need: ExactAmounts, host: HostOffer): string =>
  `pool_shrinking: needs ${amountsText(publicAmounts(need))}; idle pool members of ${host.name} hold the room and are being ended`

export const keptReason = (need: ExactAmounts, tally: ReadonlyMap<Refusal, number>, host: HostOffer): string =>
  `${waitReason(need, tally)}; it has waited ${LIMITS.placementKeepAfterMs / 1_000} s, so what comes free on ${host.name} is kept for it`

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
