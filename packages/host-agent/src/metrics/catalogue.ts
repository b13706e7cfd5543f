/** Every metric of the host agent. No label holds an id: what is told of one sandbox or pool is in the log. */
import { type Catalogue, Metrics, observeProcess, PROCESS_METRICS } from '@sandglass/telemetry'

export const HOST_AGENT_METRICS = {
  sandglass_host_control_plane_connected: { type: 'gauge', help: '1: this host holds an epoch, and its last renewal was answered.' },
  sandglass_host_epoch: { type: 'gauge', help: 'How many times this host began anew with nothing running.' },
  sandglass_host_lease_left_seconds: { type: 'gauge', help: 'How long sandboxes may run without another renewal; 0: they stand still.' },
  sandglass_host_frozen: { type: 'gauge', help: '1: the lease has run out, and everything of sandboxes stands still.' },
  sandglass_host_warden_up: { type: 'gauge', help: '1: the warden answers, which stops sandboxes when the lease runs out. Without it nothing is started.' },
  sandglass_host_lease_renewals_total: { type: 'counter', help: 'Renewals of the lease: answered, or failed.', labels: ['outcome'] },
  sandglass_host_orders_total: {
    type: 'counter',
    help: 'Orders of the control plane: taken, or refused because they cannot be believed.',
    labels: ['type', 'outcome'],
  },
  sandglass_host_due_reports: { type: 'gauge', help: 'Reports that the control plane has not answered.' },
  sandglass_host_sandboxes: { type: 'gauge', help: 'Sandboxes with a record here.', labels: ['phase'] },
  sandglass_host_starts_total: { type: 'counter', help: 'Starts that were taken up: ready, failed, or stopped by an end order.', labels: ['outcome'] },
  sandglass_host_start_duration_seconds: { type: 'histogram', help: 'From the order heard to the guest ready, by the way it came up.', labels: ['path'] },
  sandglass_host_start_phase_duration_seconds: { type: 'histogram', help: 'Phases of starts that became ready.', labels: ['path', 'phase'] },
  sandglass_host_waiting_starts: { type: 'gauge', help: 'Cold starts that wait because others are in flight.' },
  sandglass_host_pool_target_members: { type: 'gauge', help: 'Idle members that pools are to have.' },
  sandglass_host_pool_members: { type: 'gauge', help: 'Members of pools.', labels: ['state'] },
  sandglass_host_pool_claims_total: {
    type: 'counter',
    help: 'Claims of a member: one was ready (hit), one was waited for (waited), or the sandbox started cold (miss).',
    labels: ['outcome'],
  },
  sandglass_host_pool_boots_total: { type: 'counter', help: 'Members that came up.' },
  sandglass_host_pool_boot_seconds_total: { type: 'counter', help: 'Time that they took.' },
  sandglass_host_pool_boot_failures_total: { type: 'counter', help: 'Members that did not come up.' },
  sandglass_host_leftovers_total: { type: 'counter', help: 'Things of runtimes that no record names, found and removed.' },
  sandglass_host_disk_free_bytes: { type: 'gauge', help: 'Free on the file system of sandboxes.' },
  sandglass_host_memory_available_bytes: { type: 'gauge', help: 'Memory of the machine that is available.' },
  sandglass_host_data_plane_requests_total: { type: 'counter', help: 'Requests of gateways for guests.' },
  sandglass_host_data_plane_refused_total: { type: 'counter', help: 'Requests that this host answered with an error of its own.' },
  sandglass_host_data_plane_broken_total: { type: 'counter', help: 'Requests that ended before their answer did.' },
  sandglass_host_data_plane_bytes_total: {
    type: 'counter',
    help: 'Bytes of bodies to guests (up) and from guests (down), counted when a request ends.',
    labels: ['direction'],
  },
  sandglass_host_data_plane_streams: { type: 'gauge', help: 'Requests for guests that are open.' },
  sandglass_host_data_plane_sessions: { type: 'gauge', help: 'Connections of gateways.' },
  ...PROCESS_METRICS,
} as const satisfies Catalogue

export type HostAgentMetrics = Metrics<typeof HOST_AGENT_METRICS>

/** Outcomes are there from the start, as 0: else the first one of a kind would not be seen as a step. */
export function hostAgentMetrics(): HostAgentMetrics {
  const metrics = new Metrics(HOST_AGENT_METRICS)
  observeProcess(metrics)
  for (const outcome of ['ready', 'failed', 'stopped']) metrics.count('sandglass_host_starts_total', { outcome }, 0)
  for (const outcome of ['answered', 'failed']) metrics.count('sandglass_host_lease_renewals_total', { outcome }, 0)
  return metrics
}
