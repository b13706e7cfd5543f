/** What one host can do at this moment, and whether a spec fits into it. Pure. */
import { type Amounts, LIMITS, type PoolSpec } from '@sandglass/contract'
import type { Refusal } from './decide-ticket.ts'

/** What does not hang on how much is free. */
export type LocalOffer = {
  /** The lease has not run out. What is launched without one is frozen at the gate (launch.gate); this spares the attempt. */
  readonly hasLease: boolean
  readonly provedDrivers: ReadonlySet<string>
  readonly templateDigests: ReadonlySet<string>
  readonly capacity: Amounts
}

export type LocalState = LocalOffer & {
  /** Pool members too. */
  readonly sandboxes: number
  readonly freeDiskMb: number
  readonly freeMemoryMb: number
}

/** The first reason why the host cannot start this, or undefined. */
export function localRefusal(spec: PoolSpec, amounts: Amounts, local: LocalState): Refusal | undefined {
  return offerRefusal(spec, amounts, local) ?? roomRefusal(local)
}

/** Whether it could ever start here. A member of its pool takes up its room already, so a claim is asked nothing else. */
export function offerRefusal(spec: PoolSpec, amounts: Amounts, local: LocalOffer): Refusal | undefined {
  const { resources } = spec
  if (!local.hasLease) return { code: 'unavailable', detail: 'The lease of this host has run out; it starts nothing until it is renewed.' }
  if (!local.provedDrivers.has(spec.driver)) return { code: 'isolation_unavailable', detail: `The probe did not prove the driver ${spec.driver} on this host.` }
  if (spec.network.mode !== 'none') return { code: 'network_mode_unavailable', detail: `This host has no network mode ${spec.network.mode}.` }
  if (!local.templateDigests.has(spec.template.digest)) {
    return { code: 'template_not_found', detail: `This host does not have ${spec.template.name} with digest ${spec.template.digest}.` }
  }
  if (resources.vcpu > amounts.vcpu || resources.memory_mb > amounts.memory_mb || resources.disk_gb > amounts.disk_gb) {
    return { code: 'ticket_invalid', detail: 'The spec asks for more than the ticket reserves.' }
  }
  if (resources.vcpu > local.capacity.vcpu || resources.memory_mb > local.capacity.memory_mb || resources.disk_gb > local.capacity.disk_gb) {
    return { code: 'unschedulable', detail: 'The spec is larger than this host.' }
  }
  return undefined
}

/** Floors leave room for what runs already. */
function roomRefusal(local: LocalState): Refusal | undefined {
  if (local.sandboxes >= LIMITS.hostSandboxes) return { code: 'unschedulable', detail: `This host runs ${local.sandboxes} sandboxes, its limit.` }
  if (local.freeDiskMb < LIMITS.hostFreeDiskMbFloor) {
    return { code: 'unschedulable', detail: `This host has ${local.freeDiskMb} MiB of disk left; it starts nothing below ${LIMITS.hostFreeDiskMbFloor}.` }
  }
  if (local.freeMemoryMb < LIMITS.hostFreeMemoryMbFloor) {
    return { code: 'unschedulable', detail: `This host has ${local.freeMemoryMb} MiB of memory left; it starts nothing below ${LIMITS.hostFreeMemoryMbFloor}.` }
  }
  return undefined
}
