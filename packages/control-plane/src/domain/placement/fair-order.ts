/**
 * Whose turn it is, as a pure function: what waits and what its tenants hold, to the order in which room is given away.
 *
 * A tenant's share is the largest of its shares of the fleet's vCPU, memory and disk, divided by its weight (dominant resource fairness). The tenant with the
 * smallest share is next, with the one of its own that has waited longest, and its share grows by what that asks for; so one tenant's thousand go in turns
 * with another's one. Waiting long counts against the share (`placementAgeingAfterMs`, `placementAgeingMs`): whoever holds much is late and never last for ever.
 */
import { LIMITS } from '@sandglass/contract'
import { type ExactAmounts, plus, ZERO } from '../amounts.ts'

export type Waiting = {
  readonly id: string
  readonly tenantId: string
  readonly need: ExactAmounts
  /** Since it is wanted running, by the database's clock. */
  readonly ageMs: number
}

export type TenantShare = {
  readonly tenantId: string
  /** The operator's: a tenant of weight two gets twice as much before it is anybody else's turn. */
  readonly weight: number
  /** By what was placed. */
  readonly holds: ExactAmounts
}

type Line = { readonly weight: number; readonly waiting: readonly Waiting[]; next: number; holds: ExactAmounts }

/**
 * @param fleet what all hosts offer together
 * @param most no more than so many, the first ones
 */
export function fairOrder(waiting: readonly Waiting[], tenants: readonly TenantShare[], fleet: ExactAmounts, most: number = waiting.length): Waiting[] {
  const shares = new Map(tenants.map((tenant) => [tenant.tenantId, tenant]))
  const lines = [...Map.groupBy(waiting, ({ tenantId }) => tenantId)].map(([tenantId, own]): Line => {
    const tenant = shares.get(tenantId)
    return { weight: tenant?.weight ?? 1, waiting: own.toSorted(olderFirst), next: 0, holds: tenant?.holds ?? ZERO }
  })
  const order: Waiting[] = []
  while (order.length < most) {
    let first: { readonly line: Line; readonly head: Waiting; readonly turn: number } | undefined
    for (const line of lines) {
      const head = line.waiting[line.next]
      if (head === undefined) continue
      const turn = share(line.holds, fleet) / line.weight - aged(head)
      if (first === undefined || turn < first.turn || (turn === first.turn && olderFirst(head, first.head) < 0)) first = { line, head, turn }
    }
    if (first === undefined) break
    const { line, head } = first
    order.push(head)
    line.next += 1
    line.holds = plus(line.holds, head.need)
  }
  return order
}

const olderFirst = (a: Waiting, b: Waiting): number => b.ageMs - a.ageMs || (a.id < b.id ? -1 : 1)

/** As a share of the fleet. */
const aged = ({ ageMs }: Waiting): number => Math.max(0, ageMs - LIMITS.placementAgeingAfterMs) / LIMITS.placementAgeingMs

/** The dominant one. Of an empty fleet the amounts alone decide. */
const share = (holds: ExactAmounts, fleet: ExactAmounts): number =>
  Math.max(holds.vcpuMilli / Math.max(1, fleet.vcpuMilli), holds.memoryMb / Math.max(1, fleet.memoryMb), holds.diskGb / Math.max(1, fleet.diskGb))
