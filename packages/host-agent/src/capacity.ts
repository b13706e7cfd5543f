/**
 * What this host offers when the operator does not say: the machine without a reserve for the system, which is the kernel, the host agent, what else runs
 * here, and what runtimes take beside their guests. CPUs are shared by weight, so they are offered several times over; memory and disk are not.
 */
import { availableParallelism } from 'node:os'
import type { Amounts } from '@sandglass/contract'
import type { Configuration } from './configuration.ts'

const SANDBOX_VCPUS_PER_CPU = 8
const RESERVED_MEMORY_SHARE = 0.15
const RESERVED_DISK_SHARE = 0.1
const MB_PER_GB = 1_024

export type Machine = { readonly totalMemoryMb: number; readonly freeDiskMb: number }

/** @param reserve kept back from what is not said outright; `cpus` are of the machine, before they are offered several times */
export function capacityOf(configured: Configuration['capacity'], reserve: Configuration['reserve'], machine: Machine, cpus = availableParallelism()): Amounts {
  const memoryMb = reserve.memoryMb ?? Math.ceil(machine.totalMemoryMb * RESERVED_MEMORY_SHARE)
  const diskMb = reserve.diskGb === undefined ? Math.ceil(machine.freeDiskMb * RESERVED_DISK_SHARE) : reserve.diskGb * MB_PER_GB
  return {
    vcpu: configured.vcpu ?? Math.max(0, (cpus - (reserve.cpus ?? 0)) * SANDBOX_VCPUS_PER_CPU),
    memory_mb: configured.memoryMb ?? Math.max(0, machine.totalMemoryMb - memoryMb),
    disk_gb: configured.diskGb ?? Math.max(0, Math.floor((machine.freeDiskMb - diskMb) / MB_PER_GB)),
  }
}
