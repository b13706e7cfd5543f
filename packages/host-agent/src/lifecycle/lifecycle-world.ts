/** What the steps of starting and stopping need from the machine. */
import type { Clock } from '../clock.ts'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { Driver } from '../drivers/contract.ts'
import type { Faults } from '../faults/crash-point.ts'
import type { GuestAgentFile } from '../guest/guest-agent-file.ts'
import type { Log } from '../log.ts'
import type { Layout } from '../state/layout.ts'
import type { Templates } from '../storage/templates.ts'
import type { LaunchGate } from '../warden/warden.ts'

export type NetworkNamespaces = {
  create(name: string, signal?: AbortSignal): Promise<void>
  remove(name: string): Promise<void>
}

export type LifecycleWorld = {
  readonly layout: Layout
  readonly clock: Clock
  readonly log: Log
  readonly faults: Faults
  readonly network: NetworkNamespaces
  readonly templates: Templates
  readonly guestAgent: GuestAgentFile
  readonly gate: LaunchGate
  driver(name: string): Driver
  /** Those that a runtime of unknown origin may belong to. */
  readonly drivers: readonly Driver[]
}

/** Whose a runtime is. */
export type RuntimeIdentity = { readonly name: RuntimeName; readonly sandbox: string; readonly generation: number; readonly epoch: number }
