/** What is read at a scrape: of this process at once, of the database by `readDatabase` before the text is made. */
import { SANDBOX_STATUSES } from '@sandglass/contract'
import type { Context } from '../context.ts'
import type { ReconcilerStatus } from '../reconcilers/reconciler.ts'
import { type Figures, readFigures } from '../store/figures.ts'
import { countSandboxesByStatus } from '../store/sandboxes.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB

export type ProcessSources = {
  readonly reconcilers: () => ReconcilerStatus[]
  readonly listening: () => boolean
  readonly openStreams: () => number
  readonly eventStreams: () => number
  readonly requests: () => { readonly running: number; readonly queued: number }
}

export function observeControlPlane({ metrics, waiters, db }: Pick<Context, 'metrics' | 'waiters' | 'db'>, sources: ProcessSources): void {
  const each = (of: (status: ReconcilerStatus) => number) => () =>
    sources.reconcilers().map((status) => ({ labels: { reconciler: status.name }, value: of(status) }))
  metrics.from(
    'sandglass_reconciler_runs_total',
    each((status) => status.runs),
  )
  metrics.from(
    'sandglass_reconciler_failures_total',
    each((status) => status.failures),
  )
  metrics.from(
    'sandglass_reconciler_actions_total',
    each((status) => status.actions),
  )
  metrics.from(
    'sandglass_reconciler_run_seconds_total',
    each((status) => status.run_seconds),
  )
  metrics.from(
    'sandglass_reconciler_period_seconds',
    each((status) => status.period_ms / 1_000),
  )
  metrics.from(
    'sandglass_reconciler_last_success_timestamp_seconds',
    each((status) => (status.last_success_at === null ? 0 : Date.parse(status.last_success_at) / 1_000)),
  )
  metrics.from('sandglass_wakeups_connected', () => (sources.listening() ? 1 : 0))
  metrics.from('sandglass_internal_streams', sources.openStreams)
  metrics.from('sandglass_event_streams', sources.eventStreams)
  metrics.from('sandglass_api_requests', () => Object.entries(sources.requests()).map(([state, value]) => ({ labels: { state }, value })))
  metrics.from('sandglass_operation_waiters', () => waiters.count)
  const pools = () => Object.entries(db.connections)
  metrics.from('sandglass_database_connections', () =>
    pools().flatMap(([pool, { total, idle }]) => [
      { labels: { pool, state: 'used' }, value: total - idle },
      { labels: { pool, state: 'idle' }, value: idle },
    ]),
  )
  metrics.from('sandglass_database_connection_waiters', () => pools().map(([pool, { waiting }]) => ({ labels: { pool }, value: waiting })))
}

/** While the database is away its figures are left out: the process's own still tell what goes on. @returns to be called before each text */
export function observeDatabase({ metrics, db, config, log }: Pick<Context, 'metrics' | 'db' | 'config' | 'log'>): () => Promise<void> {
  let figures: Figures | undefined
  let statuses: ReadonlyMap<string, number> | undefined
  const one = (of: (known: Figures) => number) => () => (figures === undefined ? [] : [{ value: of(figures) }])
  metrics.from('sandglass_database_up', () => (figures === undefined ? 0 : 1))
  metrics.from('sandglass_sandboxes', () =>
    statuses === undefined ? [] : SANDBOX_STATUSES.map((status) => ({ labels: { status }, value: statuses?.get(status) ?? 0 })),
  )
  metrics.from('sandglass_hosts', () =>
    figures === undefined
      ? []
      : [
          { labels: { state: 'live' }, value: figures.hosts_live },
          { labels: { state: 'cordoned' }, value: figures.hosts_cordoned },
          { labels: { state: 'draining' }, value: figures.hosts_draining },
          { labels: { state: 'lost' }, value: figures.hosts_lost },
        ],
  )
  metrics.from(
    'sandglass_lost_host_sandboxes',
    one((known) => known.lost_host_sandboxes),
  )
  metrics.from(
    'sandglass_fleet_capacity_vcpus',
    one((known) => known.vcpu_milli_capacity / 1_000),
  )
  metrics.from(
    'sandglass_fleet_reserved_vcpus',
    one((known) => known.vcpu_milli_reserved / 1_000),
  )
  metrics.from(
    'sandglass_fleet_capacity_memory_bytes',
    one((known) => known.memory_mb_capacity * MIB),
  )
  metrics.from(
    'sandglass_fleet_reserved_memory_bytes',
    one((known) => known.memory_mb_reserved * MIB),
  )
  metrics.from(
    'sandglass_fleet_capacity_disk_bytes',
    one((known) => known.disk_gb_capacity * GIB),
  )
  metrics.from(
    'sandglass_fleet_reserved_disk_bytes',
    one((known) => known.disk_gb_reserved * GIB),
  )
  metrics.from(
    'sandglass_pool_target_members',
    one((known) => known.pool_target),
  )
  metrics.from(
    'sandglass_pool_held_members',
    one((known) => known.pool_held),
  )
  metrics.from(
    'sandglass_sandbox_oldest_pending_age_seconds',
    one((known) => known.oldest_pending_seconds),
  )
  metrics.from(
    'sandglass_outbox_oldest_age_seconds',
    one((known) => known.oldest_wake_seconds),
  )
  metrics.from(
    'sandglass_events_oldest_unsealed_age_seconds',
    one((known) => known.oldest_unsealed_seconds),
  )
  const of = db.for('reconcilers')
  return async () => {
    try {
      figures = await readFigures(of, config.timing.leaseMs)
      statuses = new Map((await countSandboxesByStatus(of)).map((row) => [row.observed, row.sandboxes]))
    } catch (error) {
      figures = undefined
      statuses = undefined
      log.warn({ err: error }, 'no figures from the database')
    }
  }
}
