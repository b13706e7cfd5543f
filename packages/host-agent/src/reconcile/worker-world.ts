/** What the worker of a sandbox needs from its host. */
import type { Tracing } from '@sandglass/telemetry'
import type { Clock } from '../clock.ts'
import type { HostPosition } from '../domain/decide-ticket.ts'
import type { LocalOffer, LocalState } from '../domain/local-limits.ts'
import type { LifecycleWorld } from '../lifecycle/lifecycle-world.ts'
import type { Log } from '../log.ts'
import type { HostAgentMetrics } from '../metrics/catalogue.ts'
import type { Pools } from '../pools/pools.ts'
import type { SandboxRecords } from '../state/sandbox-records.ts'
import type { DueReports } from './due-reports.ts'
import type { Slots } from './slots.ts'

export type WorkerWorld = {
  readonly lifecycle: LifecycleWorld
  readonly records: SandboxRecords
  readonly reports: DueReports
  readonly starts: Slots
  readonly ends: Slots
  readonly clock: Clock
  readonly log: Log
  readonly metrics: HostAgentMetrics
  readonly tracing: Tracing
  readonly pools: Pick<Pools, 'claim' | 'noteWork' | 'settled' | 'stored' | 'remember' | 'stray'>
  position(): HostPosition
  localOffer(): LocalOffer
  localState(): Promise<LocalState>
}
