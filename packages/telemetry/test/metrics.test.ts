import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@sandglass/testkit'
import { type Catalogue, Metrics, observeProcess, PROCESS_METRICS } from '../src/index.ts'

const CATALOGUE = {
  things_total: { type: 'counter', help: 'Things.', labels: ['of', 'kind'] },
  wait_seconds: { type: 'histogram', help: 'Waits.', labels: ['a'] },
  level: { type: 'gauge', help: 'The level.', labels: ['of'] },
  never_total: { type: 'counter', help: 'Nothing counts it yet.' },
  never_of_a_kind_total: { type: 'counter', help: 'Of no kind yet.', labels: ['kind'] },
} as const satisfies Catalogue

test('the text has head and samples of what has any, in the order of the catalogue', () => {
  const metrics = new Metrics(CATALOGUE)
  metrics.from('level', () => [
    { labels: { of: 'a' }, value: 2 },
    { labels: { of: 'b' }, value: 3 },
  ])
  metrics.count('things_total', { of: 'a', kind: 'a' })
  metrics.count('things_total', { of: 'a', kind: 'b' }, 4)
  metrics.count('things_total', { of: 'a', kind: 'b' })
  assert.equal(
    metrics.text(),
    [
      '# HELP things_total Things.',
      '# TYPE things_total counter',
      'things_total{of="a",kind="a"} 1',
      'things_total{of="a",kind="b"} 5',
      '# HELP level The level.',
      '# TYPE level gauge',
      'level{of="a"} 2',
      'level{of="b"} 3',
      '# HELP never_total Nothing counts it yet.',
      '# TYPE never_total counter',
      'never_total 0',
      '',
    ].join('\n'),
  )
})

test('buckets are cumulative and end with everything', () => {
  const metrics = new Metrics(CATALOGUE)
  for (const seconds of [0.001, 0.002, 3, 1_000]) metrics.observeSeconds('wait_seconds', { a: 'x' }, seconds)
  const text = metrics.text()
  for (const line of [
    'wait_seconds_bucket{a="x",le="0.001"} 1',
    'wait_seconds_bucket{a="x",le="0.0025"} 2',
    'wait_seconds_bucket{a="x",le="2.5"} 2',
    'wait_seconds_bucket{a="x",le="5"} 3',
    'wait_seconds_bucket{a="x",le="120"} 3',
    'wait_seconds_bucket{a="x",le="+Inf"} 4',
    'wait_seconds_sum{a="x"} 1003.003',
    'wait_seconds_count{a="x"} 4',
  ])
    assert.ok(text.includes(`${line}\n`), `${line} is in\n${text}`)
})

test('label values are escaped', () => {
  const metrics = new Metrics(CATALOGUE)
  metrics.count('things_total', { of: 'a"b\\c\nd', kind: '' })
  assert.match(metrics.text(), /things_total\{of="a\\"b\\\\c\\nd",kind=""\} 1/)
})

test('a process tells its own memory, time and descriptors', () => {
  const metrics = new Metrics(PROCESS_METRICS)
  observeProcess(metrics)
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics.text())?.[1])
  assert.ok(value('process_resident_memory_bytes') > 1e7)
  assert.ok(value('process_cpu_seconds_total') > 0)
  assert.ok(value('process_open_fds') > 2)
  assert.ok(Math.abs(value('process_start_time_seconds') + process.uptime() - Date.now() / 1_000) < 5)
})

test('the event loop’s delay is about none at rest, and as long as it was held up', async () => {
  const metrics = new Metrics(PROCESS_METRICS)
  observeProcess(metrics)
  const lagSeconds = (): number => Number(/^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics.text())?.[1])
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  // Something else may hold this machine up for a while: one quiet moment, of as many looks of the timer as fit into it, is enough.
  await until('a quiet moment', async () => {
    await pause(200)
    return lagSeconds() < 0.02
  })
  // A look since the last scrape, from which the next one counts.
  await pause(120)
  const heldUntilMs = performance.now() + 300
  while (performance.now() < heldUntilMs);
  await pause(120)
  const seconds = lagSeconds()
  assert.ok(seconds > 0.2 && seconds < 5, `${seconds} s`)
})
