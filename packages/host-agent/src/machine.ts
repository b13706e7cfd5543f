/** What of this machine a host agent works with: its directories, its templates, the guest agent that it gives to sandboxes, its drivers. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Tracing } from '@sandglass/telemetry'
import { unifiedHierarchy } from './cgroups/cgroup-tree.ts'
import type { Clock } from './clock.ts'
import type { Configuration } from './configuration.ts'
import type { Driver } from './drivers/contract.ts'
import { driversOf } from './drivers/drivers-of.ts'
import type { Faults } from './faults/crash-point.ts'
import type { GuestAgentFile } from './guest/guest-agent-file.ts'
import type { LifecycleWorld } from './lifecycle/lifecycle-world.ts'
import type { Log } from './log.ts'
import { createNamespace, removeNamespace } from './network/network-namespace.ts'
import { type Layout, layoutOf } from './state/layout.ts'
import type { Room } from './storage/free-space.ts'
import { templates as templatesOf } from './storage/templates.ts'
import type { LaunchGate } from './warden/warden.ts'
import type { WardenPlace } from './warden/warden-process.ts'

export type AgentWorld = {
  readonly clock: Clock
  readonly log: Log
  readonly tracing: Tracing
  readonly faults: Faults
  readonly room: Room
  readonly chance: () => number
}

export type GuestAgentSource = (file: string, directory: string) => Promise<GuestAgentFile>

export type Machine = { readonly lifecycle: LifecycleWorld; readonly layout: Layout }

/** For a running agent and for `--destroy-all` alike. */
export async function machineOf(
  configuration: Configuration,
  world: AgentWorld,
  guestAgentOf: GuestAgentSource,
  gateOf: (layout: Layout) => LaunchGate,
): Promise<Machine> {
  const layout = layoutOf(configuration.stateDir, configuration.installation)
  for (const directory of [layout.sandboxes, layout.pools, layout.runtimes, layout.templates, layout.guestAgents])
    await mkdir(directory, { recursive: true, mode: 0o700 })
  const { clock, log, faults } = world
  const drivers: Driver[] = []
  const lifecycle: LifecycleWorld = {
    layout,
    clock,
    log,
    faults,
    templates: templatesOf(configuration.templatesDir, layout.templates, log),
    guestAgent: await guestAgentOf(configuration.guestAgent, layout.guestAgents),
    gate: gateOf(layout),
    drivers,
    network: { create: createNamespace, remove: removeNamespace },
    driver(name) {
      const found = drivers.find((driver) => driver.name === name)
      if (found === undefined) throw new Error(`this host has no driver ${name}`)
      return found
    },
  }
  // A driver's canary is started by the same steps as any sandbox, so drivers need the world that they are part of.
  drivers.push(...driversOf(configuration, lifecycle))
  return { lifecycle, layout }
}

export function wardenPlace(configuration: Configuration, layout: Layout): WardenPlace {
  const unified = unifiedHierarchy()
  return {
    binary: configuration.warden,
    group: unified === undefined ? undefined : join(unified, layout.cgroupParent),
    run: join(configuration.runDir, configuration.installation),
    log: layout.wardenLog,
  }
}
