/** What this host offers when the operator does not say: CPUs are shared by weight, so they are offered several times over; memory and disk are not. */
import { availableParallelism } from 'node:os'
import type { Amounts } from '@sandglass/contract'
import type { Configuration } from './configuration.ts'

const SANDBOX_VCPUS_PER_CPU = 8
const MEMORY_SHARE = 0.85
const DISK_SHARE = 0.9
const MB_PER_GB = 1_024

export function capacityOf(configured: Configuration['capacity'], machine: { totalMemoryMb: number; freeDiskMb: number }): Amounts {
  return {
    vcpu: configured.vcpu ?? availableParallelism() * SANDBOX_VCPUS_PER_CPU,
    memory_mb: configured.memoryMb ?? Math.floor(machine.totalMemoryMb * MEMORY_SHARE),
    disk_gb: configured.diskGb ?? Math.floor((machine.freeDiskMb * DISK_SHARE) / MB_PER_GB),
  }
}
