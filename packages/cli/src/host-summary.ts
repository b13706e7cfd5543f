/** Hosts in a few words. */
import type { Host } from '@sandglass/sdk'
import { thousands } from './text.ts'

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

/** `gvisor 20260905 (proved in 0.4 s)` */
export function provedIsolation(host: Host): string[] {
  return host.drivers.filter((driver) => driver.proved).map((driver) => `${driver.name} ${driver.version} (proved in ${seconds(driver.probe_ms)})`)
}

/** What is reserved of what is offered. */
export function reservedOf(host: Host): { cpu: string; memory: string; disk: string } {
  const { capacity, reserved } = host
  return {
    cpu: `${reserved.vcpu}/${capacity.vcpu}`,
    memory: `${thousands(reserved.memory_mb)}/${thousands(capacity.memory_mb)} MB`,
    disk: `${thousands(reserved.disk_gb)}/${thousands(capacity.disk_gb)} GB`,
  }
}

/** Idle members that its pools are to have, and how many of those that are held for them are being given up. */
export function poolOf({ pool: { target, held } }: Host): string {
  return held > target ? `${target} (-${held - target})` : String(target)
}
