/** What a host agent works with, of the simulated machine. */
import type { Configuration } from '@sandglass/host-agent/configuration'
import type { LifecycleWorld } from '@sandglass/host-agent/lifecycle/lifecycle-world'
import type { AgentWorld, Machine } from '@sandglass/host-agent/machine'
import { layoutOf } from '@sandglass/host-agent/state/layout'
import { simulatedDriver } from '../host/driver.ts'
import { presentMachine, TEMPLATE } from '../host/machine.ts'

export async function machineOf(configuration: Configuration, { clock, log, faults }: AgentWorld): Promise<Machine> {
  const layout = layoutOf(configuration.stateDir, configuration.installation)
  const driver = simulatedDriver(presentMachine())
  const lifecycle: LifecycleWorld = {
    layout,
    clock,
    log,
    faults,
    network: { create: async () => undefined, remove: async () => undefined },
    templates: { list: () => [TEMPLATE], mounted: async () => '/nonexistent', refresh: async () => undefined, unmountAll: async () => undefined },
    guestAgent: { version: 'simulated', linkTo: async () => undefined },
    drivers: [driver],
    driver: () => driver,
  }
  return { lifecycle, layout }
}
