/** Every metric of the control plane. No label holds an id: what is told of one sandbox, host or tenant is in the API and in the log. */
import { type Catalogue, Metrics, observeProcess, PROCESS_METRICS } from '@sandglass/telemetry'

export const CONTROL_PLANE_METRICS = {
  http_server_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from a request’s head to the end of its answer.',
    labels: ['http_request_method', 'http_route', 'http_response_status_code'],
  },
  sandglass_api_requests: { type: 'gauge', help: 'Requests of clients that are worked on (running), and that wait for a place (queued).', labels: ['state'] },
  sandglass_sandboxes: { type: 'gauge', help: 'Sandboxes that are not gone.', labels: ['status'] },
  sandglass_sandbox_oldest_pending_age_seconds: {
    type: 'gauge',
    help: 'For how long the oldest sandbox that waits for a place has been wanted; 0: none waits.',
  },
  sandglass_sandbox_start_duration_seconds: {
    type: 'histogram',
    help: 'From the create, start or restart to ready, by the way it came up: from a pool (claimed) or not (cold).',
    labels: ['path'],
  },
  sandglass_runtimes_ended_total: { type: 'counter', help: 'Runtimes that hosts proved to be gone, by why they ended.', labels: ['reason'] },
  sandglass_host_reports_total: { type: 'counter', help: 'Reports of hosts.', labels: ['type', 'outcome'] },
  sandglass_orders_sent_total: { type: 'counter', help: 'Orders written to watches of hosts.', labels: ['type'] },
  sandglass_hosts: { type: 'gauge', help: 'Hosts: live, cordoned, draining (or drained), or lost (no renewal for a lease).', labels: ['state'] },
  sandglass_lost_host_sandboxes: { type: 'gauge', help: 'Sandboxes on hosts that are lost: in doubt until the host renews or is fenced.' },
  sandglass_hosts_fenced_total: { type: 'counter', help: 'Hosts that this control plane fenced: they renewed nothing for lease and grace.' },
  sandglass_host_lease_watches_total: {
    type: 'counter',
    help: 'How often this control plane began to watch leases anew: it started, or something kept it from looking or from writing.',
  },
  sandglass_host_lease_longest_unchanged_seconds: {
    type: 'gauge',
    help: 'For how long the lease that has been so for longest was seen without a renewal, by this control plane’s own clock.',
  },
  sandglass_fleet_capacity_vcpus: { type: 'gauge', help: 'CPUs that hosts offer, those lost left out.' },
  sandglass_fleet_reserved_vcpus: { type: 'gauge', help: 'CPUs that are reserved on them.' },
  sandglass_fleet_capacity_memory_bytes: { type: 'gauge', help: 'Memory that hosts offer, those lost left out.' },
  sandglass_fleet_reserved_memory_bytes: { type: 'gauge', help: 'Memory that is reserved on them.' },
  sandglass_fleet_capacity_disk_bytes: { type: 'gauge', help: 'Disk that hosts offer, those lost left out.' },
  sandglass_fleet_reserved_disk_bytes: { type: 'gauge', help: 'Disk that is reserved on them.' },
  sandglass_pool_target_members: { type: 'gauge', help: 'Idle members that pools are to have.' },
  sandglass_pool_held_members: { type: 'gauge', help: 'Units that are reserved for idle members.' },
  sandglass_reconciler_runs_total: { type: 'counter', help: 'Runs of a reconciler.', labels: ['reconciler'] },
  sandglass_reconciler_failures_total: { type: 'counter', help: 'Runs that failed.', labels: ['reconciler'] },
  sandglass_reconciler_actions_total: { type: 'counter', help: 'What runs did, in the reconciler’s own unit.', labels: ['reconciler'] },
  sandglass_reconciler_run_seconds_total: { type: 'counter', help: 'Time spent in runs.', labels: ['reconciler'] },
  sandglass_reconciler_period_seconds: { type: 'gauge', help: 'It runs at least this often.', labels: ['reconciler'] },
  sandglass_reconciler_last_success_timestamp_seconds: {
    type: 'gauge',
    help: 'End of the last run that did not fail, Unix time; 0: none yet.',
    labels: ['reconciler'],
  },
  sandglass_outbox_oldest_age_seconds: { type: 'gauge', help: 'Age of the oldest wake-up that was not sent to other replicas; 0: all are.' },
  sandglass_events_oldest_unsealed_age_seconds: { type: 'gauge', help: 'Age of the oldest event without a position in the change feed; 0: all have one.' },
  sandglass_event_streams: { type: 'gauge', help: 'Open streams of the change feed.' },
  sandglass_internal_streams: { type: 'gauge', help: 'Open watches of hosts and feeds of gateways.' },
  sandglass_operation_waiters: { type: 'gauge', help: 'Requests that wait for an operation.' },
  sandglass_wakeups_connected: { type: 'gauge', help: '1: wake-ups of other replicas are heard.' },
  sandglass_database_up: { type: 'gauge', help: '1: the database answered for this scrape; 0: what is read from it is left out.' },
  sandglass_database_connections: { type: 'gauge', help: 'Connections to the database.', labels: ['pool', 'state'] },
  sandglass_database_connection_waiters: { type: 'gauge', help: 'Transactions that wait for a connection.', labels: ['pool'] },
  ...PROCESS_METRICS,
} as const satisfies Catalogue

export type ControlPlaneMetrics = Metrics<typeof CONTROL_PLANE_METRICS>

export function controlPlaneMetrics(): ControlPlaneMetrics {
  const metrics = new Metrics(CONTROL_PLANE_METRICS)
  observeProcess(metrics)
  return metrics
}
