/** The drivers that this host offers, and what their probes prove. */
import { type DriverProbe, LIMITS } from '@sandglass/contract'
import { findCgroupTree } from '../cgroups/cgroup-tree.ts'
import type { Configuration } from '../configuration.ts'
import { noFaults } from '../faults/crash-point.ts'
import type { LifecycleWorld } from '../lifecycle/lifecycle-world.ts'
import type { Log } from '../log.ts'
import { bootId } from '../state/boot-id.ts'
import type { Driver } from './contract.ts'
import { fakeDriver } from './fake/driver.ts'
import { canaryOf } from './gvisor/canary.ts'
import { gvisorDriver } from './gvisor/driver.ts'
import { gvisorProbe } from './gvisor/probe.ts'

export function driversOf(configuration: Configuration, lifecycle: LifecycleWorld): Driver[] {
  const { clock, layout, log, guestAgent, templates, gate } = lifecycle
  const drivers: Driver[] = []
  if (process.getuid?.() === 0) {
    const conditions = async (): Promise<string> => `${await bootId()} ${guestAgent.version} ${templates.list()[0]?.digest ?? ''}`
    const canary = canaryOf({ ...lifecycle, faults: noFaults })
    const probe = gvisorProbe({ binary: configuration.runsc, proofFile: layout.probes, conditions, canary, clock })
    const runsc = { binary: configuration.runsc, root: layout.runscRoot }
    drivers.push(gvisorDriver({ runsc, layout, cgroups: findCgroupTree(), clock, probe, gate }))
  } else log.warn('driver.unavailable', { driver: 'gvisor', detail: 'The host agent does not run as root.' })
  if (configuration.fakeDriver) drivers.push(fakeDriver(layout, clock, gate))
  return drivers
}

export async function probeDrivers(drivers: readonly Driver[], log: Log, signal: AbortSignal): Promise<readonly DriverProbe[]> {
  const probes = await Promise.all(drivers.map((driver) => driver.probe(AbortSignal.any([signal, AbortSignal.timeout(LIMITS.hostProbeMs)]))))
  for (const { name, proved, version, detail, probe_ms } of probes) log.info('driver.probed', { driver: name, proved, version, detail, probe_ms })
  return probes
}
