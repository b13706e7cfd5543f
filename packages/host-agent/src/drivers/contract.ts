/**
 * What an isolation driver must do. Every driver is held to one behaviour table (test/driver-behaviour.test.ts).
 *
 * A driver makes no decisions. What it remembers is only a shortcut: everything is found again on the machine by the runtime's name, so that
 * any method works after the agent was killed, and `kill` and `clean` also when the runtime is already dead.
 *
 * `find` looks for one runtime's own process; `traces` looks for everything of every runtime, also what is left of a dead one.
 */
import type { DriverProbe, RuntimeSpec } from '@sandglass/contract'
import type { RuntimeUsage } from '../cgroups/runtime-usage.ts'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { ProcessIdentity } from '../processes/process-table.ts'
import type { RuntimePaths } from '../state/layout.ts'

/** What a driver must know to launch: of a sandbox, or of a pool member, which has neither environment nor a hostname of its own yet. */
export type LaunchSpec = Pick<RuntimeSpec, 'resources' | 'pids_max' | 'hostname' | 'env'>

export type Launch = {
  readonly name: RuntimeName
  readonly paths: RuntimePaths
  readonly spec: LaunchSpec
  /** Of the mounted template; null for a driver that needs none. */
  readonly root: string | null
  /** Booted ahead of need: until `limit`, whatever else runs comes first. */
  readonly yields: boolean
}

export type DriverNeeds = {
  /** A network namespace of its own, made before the launch. */
  readonly network: boolean
  /** The template mounted on the host. */
  readonly template: boolean
  /** The guest is told its hostname and its limits; not for a guest that shares the machine's. */
  readonly identity: boolean
}

export type Driver = {
  readonly name: RuntimeSpec['driver']
  readonly needs: DriverNeeds
  /** Starts a canary, with a deadline. Never throws: what failed is the detail of a probe that proved nothing. */
  probe(signal: AbortSignal): Promise<DriverProbe>
  /** Writes what `launch` needs; starts nothing. */
  prepare(launch: Launch): Promise<void>
  /** Starts the runtime detached from this process. Its guest dials the channel by itself. */
  launch(launch: Launch, signal: AbortSignal, spawned: () => void): Promise<void>
  /** The process that lives exactly as long as the runtime, or undefined when it is dead. */
  find(name: RuntimeName): ProcessIdentity | undefined
  /** Its share of the CPUs and its quota, which would slow the start down if it were set before. */
  limit(launch: { readonly name: RuntimeName; readonly vcpu: number }): Promise<void>
  /** What is proved about a running one. */
  evidence(name: RuntimeName): Readonly<Record<string, string>>
  /** What a running one uses, counted from outside. */
  usage(name: RuntimeName): RuntimeUsage
  /** Why a dead runtime died, if the machine still tells. */
  postMortem(name: RuntimeName): string | null
  /** Ends every process of it and waits until none is left. Idempotent. */
  kill(name: RuntimeName): Promise<void>
  /** Removes what only this driver knows of, after `kill`. Idempotent. */
  clean(name: RuntimeName): Promise<void>
  /** Names of runtimes of this installation that have left a process, a group or a state file, alive or dead, known or not. */
  traces(): DriverTraces
}

export type DriverTraces = { readonly process: ReadonlySet<string>; readonly cgroup: ReadonlySet<string>; readonly runtime_state: ReadonlySet<string> }
