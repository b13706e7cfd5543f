/** What is read of a host agent at a scrape. */
import type { HostCensus } from '../census/host-census.ts'
import type { HostLease } from '../control/host-lease.ts'
import type { HostLink } from '../control/host-link.ts'
import type { DataPlaneCounters } from '../data-plane/data-plane-server.ts'
import type { Pool } from '../pools/pool.ts'
import type { Pools } from '../pools/pools.ts'
import type { DueReports } from '../reconcile/due-reports.ts'
import type { SandboxWorkers } from '../reconcile/sandbox-workers.ts'
import type { Slots } from '../reconcile/slots.ts'
import type { Room } from '../storage/free-space.ts'
import type { Warden } from '../warden/warden.ts'
import type { HostAgentMetrics } from './catalogue.ts'

const MIB = 1024 * 1024
const PHASES = ['launching', 'running', 'ending', 'gone'] as const
const STATES = ['booting', 'ready', 'picked', 'ending'] as const

export type AgentParts = {
  readonly link: Pick<HostLink, 'connected'>
  readonly lease: Pick<HostLease, 'record'>
  readonly warden: Pick<Warden, 'alive' | 'frozen' | 'leftMs'>
  readonly reports: Pick<DueReports, 'size'>
  readonly workers: Pick<SandboxWorkers, 'all'>
  readonly starts: Pick<Slots, 'waiting'>
  readonly pools: Pick<Pools, 'all'>
  readonly census: Pick<HostCensus, 'freeDiskMb' | 'leftovers'>
  readonly room: Pick<Room, 'freeMemoryMb'>
  readonly dataPlane: DataPlaneCounters
}

export function observeAgent(metrics: HostAgentMetrics, parts: AgentParts): void {
  const { link, lease, warden, reports, workers, starts, census, room } = parts
  metrics.from('sandglass_host_control_plane_connected', () => (link.connected ? 1 : 0))
  metrics.from('sandglass_host_epoch', () => lease.record.epoch)
  metrics.from('sandglass_host_lease_left_seconds', () => Math.max(0, warden.leftMs() / 1_000))
  metrics.from('sandglass_host_frozen', () => (warden.frozen ? 1 : 0))
  metrics.from('sandglass_host_warden_up', () => (warden.alive ? 1 : 0))
  metrics.from('sandglass_host_due_reports', () => reports.size)
  metrics.from('sandglass_host_sandboxes', () => {
    const phases = workers.all().map((worker) => worker.record?.phase)
    return PHASES.map((phase) => ({ labels: { phase }, value: phases.filter((one) => one === phase).length }))
  })
  metrics.from('sandglass_host_waiting_starts', () => starts.waiting)
  metrics.from('sandglass_host_leftovers_total', () => census.leftovers)
  metrics.from('sandglass_host_disk_free_bytes', () => census.freeDiskMb * MIB)
  metrics.from('sandglass_host_memory_available_bytes', () => room.freeMemoryMb() * MIB)
  observePools(metrics, parts)
  observeDataPlane(metrics, parts)
}

/** Over all pools: which one it is changes with every template and size, and is in the log. They are forgotten together, with an epoch: a reset of all counters. */
function observePools(metrics: HostAgentMetrics, { pools }: AgentParts): void {
  const sum = (of: (pool: Pool) => number) => pools.all().reduce((total, pool) => total + of(pool), 0)
  metrics.from('sandglass_host_pool_target_members', () => sum((pool) => pool.target))
  metrics.from('sandglass_host_pool_members', () => STATES.map((state) => ({ labels: { state }, value: sum((pool) => pool.count(state)) })))
  metrics.from('sandglass_host_pool_claims_total', () => [
    { labels: { outcome: 'hit' }, value: sum(({ counters }) => counters.hits) },
    { labels: { outcome: 'waited' }, value: sum(({ counters }) => counters.waits) },
    { labels: { outcome: 'miss' }, value: sum(({ counters }) => counters.misses) },
  ])
  metrics.from('sandglass_host_pool_boots_total', () => sum(({ counters }) => counters.boots))
  metrics.from('sandglass_host_pool_boot_seconds_total', () => sum(({ counters }) => counters.bootSeconds))
  metrics.from('sandglass_host_pool_boot_failures_total', () => sum(({ counters }) => counters.bootFailures))
}

function observeDataPlane(metrics: HostAgentMetrics, { dataPlane }: AgentParts): void {
  metrics.from('sandglass_host_data_plane_requests_total', () => dataPlane.requests)
  metrics.from('sandglass_host_data_plane_refused_total', () => dataPlane.refused)
  metrics.from('sandglass_host_data_plane_broken_total', () => dataPlane.broken)
  metrics.from('sandglass_host_data_plane_bytes_total', () => [
    { labels: { direction: 'up' }, value: dataPlane.bytesUp },
    { labels: { direction: 'down' }, value: dataPlane.bytesDown },
  ])
  metrics.from('sandglass_host_data_plane_streams', () => dataPlane.streams)
  metrics.from('sandglass_host_data_plane_sessions', () => dataPlane.sessions)
}
