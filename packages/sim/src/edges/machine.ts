/** What a host agent works with, of the simulated machine. */
import type { Configuration } from '@sandglass/host-agent/configuration'
import type { LifecycleWorld } from '@sandglass/host-agent/lifecycle/lifecycle-world'
import type { AgentWorld, Machine } from '@sandglass/host-agent/machine'
import { type Layout, layoutOf } from '@sandglass/host-agent/state/layout'
import type { LaunchGate } from '@sandglass/host-agent/warden/warden'
import { simulatedDriver } from '../host/driver.ts'
import { presentMachine, TEMPLATE } from '../host/machine.ts'

export async function machineOf(
  configuration: Configuration,
  { clock, log, faults }: AgentWorld,
  _guestAgentOf: unknown,
  gateOf: (layout: Layout) => LaunchGate,
): Promise<Machine> {
  const layout = layoutOf(configuration.stateDir, configuration.installation)
  const gate = gateOf(layout)
  const driver = simulatedDriver(presentMachine(), gate)
  const lifecycle: LifecycleWorld = {
    layout,
    clock,
    log,
    faults,
    network: { create: async () => undefined, remove: async () => undefined },
    templates: { list: () => [TEMPLATE], mounted: async () => '/nonexistent', refresh: async () => undefined, unmountAll: async () => undefined },
    guestAgent: { version: 'simulated', linkTo: async () => undefined },
    gate,
    drivers: [driver],
    driver: () => driver,
  }
  return { lifecycle, layout }
}

export const wardenPlace = (): undefined => undefined
