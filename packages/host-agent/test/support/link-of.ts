/** The link of a host to scripts: who asks, what it may do, and what happens at its end are the test's. */
import { HostLink, type LinkWorld } from '../../src/control/host-link.ts'
import { noFaults } from '../../src/faults/crash-point.ts'
import { silentLog } from '../../src/log.ts'
import { hostAgentMetrics } from '../../src/metrics/catalogue.ts'
import { DueReports } from '../../src/reconcile/due-reports.ts'
import { SandboxWorkers } from '../../src/reconcile/sandbox-workers.ts'
import type { ScriptedHost } from './scripted-host.ts'

export function linkOf(host: ScriptedHost, scripts: Pick<LinkWorld, 'client' | 'lease' | 'warden' | 'endEverything'>): HostLink {
  return new HostLink({
    ...scripts,
    workers: new SandboxWorkers(host.world),
    pools: { learn: () => {}, obey: () => true, enter: async () => {} },
    reports: new DueReports(),
    clock: host.clock,
    chance: () => 0.5,
    log: silentLog,
    metrics: hostAgentMetrics(),
    faults: noFaults,
    describe: () => ({
      name: 'test-host',
      version: '1',
      capacity: { vcpu: 1, memory_mb: 512, disk_gb: 1 },
      drivers: [],
      templates: [],
      data_plane_url: 'http://127.0.0.1:1',
    }),
  })
}
