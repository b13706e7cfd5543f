/** What every role tells of its own process, under the names that Prometheus' client libraries share. */
import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Catalogue } from './metrics.ts'

export const PROCESS_METRICS = {
  process_cpu_seconds_total: { type: 'counter', help: 'User and system CPU time of this process.' },
  process_resident_memory_bytes: { type: 'gauge', help: 'Resident memory of this process.' },
  process_open_fds: { type: 'gauge', help: 'Open file descriptors of this process.' },
  process_start_time_seconds: { type: 'gauge', help: 'When this process started, Unix time.' },
  nodejs_heap_size_used_bytes: { type: 'gauge', help: 'Heap in use.' },
  nodejs_eventloop_lag_p99_seconds: { type: 'gauge', help: '99th percentile of the event loop’s delay since the last scrape.' },
} as const satisfies Catalogue

/** A timer of this period is looked at; what it measures begins with the period itself. */
const LAG_PERIOD_MS = 50

/** @param metrics of a catalogue that PROCESS_METRICS are part of */
export function observeProcess(metrics: { from(name: keyof typeof PROCESS_METRICS, read: () => number): void }): void {
  const startedSeconds = Date.now() / 1_000 - process.uptime()
  const lag = monitorEventLoopDelay({ resolution: LAG_PERIOD_MS })
  lag.enable()
  metrics.from('process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
  metrics.from('process_resident_memory_bytes', () => process.memoryUsage.rss())
  metrics.from('process_open_fds', () => readdirSync('/proc/self/fd').length)
  metrics.from('process_start_time_seconds', () => startedSeconds)
  metrics.from('nodejs_heap_size_used_bytes', () => process.memoryUsage().heapUsed)
  metrics.from('nodejs_eventloop_lag_p99_seconds', () => {
    const seconds = Math.max(0, lag.percentile(99) / 1e9 - LAG_PERIOD_MS / 1_000)
    lag.reset()
    return seconds
  })
}
