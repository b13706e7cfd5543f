/** Sizes of the sandboxes that are measured; a peer gets the same limits. */
import { DEFAULT_RESOURCES, type Resources } from '@sandglass/contract/sandbox'

/** For starts: what users get who say nothing, and what pools hold. */
export const DEFAULT_SIZE: Resources = DEFAULT_RESOURCES

/** For density: the smallest there is. */
export const SMALL: Resources = { vcpu: 0.1, memory_mb: 128, disk_gb: 1 }

/** For commands and streams: enough that the quota of the sandbox is not what is measured. */
export const ROOMY: Resources = { vcpu: 2, memory_mb: 1_024, disk_gb: 4 }

export const asOptions = ({ vcpu, memory_mb, disk_gb }: Resources): { vcpu: number; memoryMb: number; diskGb: number } => ({
  vcpu,
  memoryMb: memory_mb,
  diskGb: disk_gb,
})
