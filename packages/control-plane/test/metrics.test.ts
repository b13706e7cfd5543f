/** What the metrics tell is what happened, in base units and without ids. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'
import { makeMutant } from './mutant.ts'

const postgres = usePostgres()

const textOf = async (rig: Rig): Promise<string> => (await rig.call<string>('GET', '/metrics', { key: '' })).body

/** @param series name with its labels, as it stands in the text @returns NaN when it is not there */
async function value(rig: Rig, series: string): Promise<number> {
  const line = (await textOf(rig)).split('\n').find((one) => one.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1) ?? Number.NaN)
}

const untilAbove = async (rig: Rig, series: string, least: number): Promise<void> =>
  void (await until(`${series} above ${least}`, async () => (await value(rig, series)) > least))

test('a start, its time and its end are counted once, however often they are reported', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host()
  const { body } = await rig.create()
  await host.ready(body.id, 1)
  assert.equal(await value(rig, 'sandglass_sandbox_start_duration_seconds_count{path="cold"}'), 1)
  const seconds = await value(rig, 'sandglass_sandbox_start_duration_seconds_sum{path="cold"}')
  assert.ok(seconds > 0 && seconds < 10, `${seconds} s`)
  assert.equal(await value(rig, 'sandglass_sandboxes{status="ready"}'), 1)
  await rig.remove(body.id)
  await host.ended(body.id, 9)
  assert.equal(await value(rig, 'sandglass_runtimes_ended_total{reason="ordered"}'), 1)
  assert.equal(await value(rig, 'sandglass_sandboxes{status="ready"}'), 0)
})

test('requests are timed by route and status, and nothing that a client chose is a label', async () => {
  await using rig = await startRig(postgres.current)
  await rig.call('GET', '/v1/sandboxes/nobody-knows')
  await rig.call('GET', '/nowhere/at-all')
  const text = await textOf(rig)
  const count = (route: string) =>
    `http_server_request_duration_seconds_count{http_request_method="GET",http_route="${route}",http_response_status_code="404"} 1\n`
  assert.ok(text.includes(count('/v1/sandboxes/:id')), text)
  assert.ok(text.includes(count('none')), text)
  assert.ok(!/nobody-knows|at-all|route="\/metrics"/.test(text))
})

test('capacity is told in bytes and of hosts that live; what waits and what is lost has an age and a number', async () => {
  await using rig = await startRig(postgres.current, { timing: { leaseMs: 60_000 } })
  await rig.create({}, { wait: 0 })
  await untilAbove(rig, 'sandglass_sandbox_oldest_pending_age_seconds', 0)
  assert.equal(await value(rig, 'sandglass_hosts{state="live"}'), 0)
  const host = await rig.host({ capacity: { vcpu: 4, memory_mb: 4_096, disk_gb: 20 } })
  await untilAbove(rig, 'sandglass_sandboxes{status="ready"}', 0)
  const text = await textOf(rig)
  for (const line of [
    'sandglass_hosts{state="live"} 1',
    'sandglass_hosts{state="lost"} 0',
    'sandglass_fleet_capacity_memory_bytes 4294967296',
    'sandglass_fleet_reserved_memory_bytes 536870912',
    'sandglass_fleet_capacity_disk_bytes 21474836480',
    'sandglass_fleet_reserved_vcpus 0.5',
    'sandglass_sandbox_oldest_pending_age_seconds 0',
    'sandglass_lost_host_sandboxes 0',
    'sandglass_database_up 1',
  ])
    assert.ok(text.includes(`${line}\n`), `${line} is in\n${text}`)
  assert.ok(!text.includes(host.id), 'no id of a host')
  await host.leave()
  await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '2 minutes'")
  assert.equal(await value(rig, 'sandglass_hosts{state="lost"}'), 1)
  assert.equal(await value(rig, 'sandglass_lost_host_sandboxes'), 1)
  assert.equal(await value(rig, 'sandglass_fleet_capacity_memory_bytes'), 0)
})

test('a wake-up that nobody sends and an event that nobody seals grow old', async () => {
  await using rig = await startRig(postgres.current, { timing: { sweepMs: 3_600_000 } })
  const growsOld = (series: string, another: string) =>
    until(`${series} above 0.01`, async () => {
      await rig.rows(another) // The first looks of a replica may still take what was there before.
      return (await value(rig, series)) > 0.01
    })
  await growsOld('sandglass_outbox_oldest_age_seconds', "INSERT INTO sandglass.outbox (origin, topic, key) VALUES ('nobody', 'placement', '')")
  await growsOld(
    'sandglass_events_oldest_unsealed_age_seconds',
    "INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation) SELECT id, 'sandbox.ready', 'sbl1aaaaaaaaaaaaaaaa', 0 FROM sandglass.tenants LIMIT 1",
  )
})

test('while the database is away that is told, and the age of the last success; nothing stale is', async () => {
  await using rig = await startRig(postgres.current)
  const lastSuccess = () => value(rig, 'sandglass_reconciler_last_success_timestamp_seconds{reconciler="timeouts"}')
  const failures = () => value(rig, 'sandglass_reconciler_failures_total{reconciler="timeouts"}')
  await until('a first success', async () => (await lastSuccess()) > 0)
  await postgres.current.crash()
  await until('a failure', async () => (await failures()) > 0)
  const before = await lastSuccess()
  const failed = await failures()
  await until('another failure', async () => (await failures()) > failed)
  assert.equal(await lastSuccess(), before)
  assert.equal(await value(rig, 'sandglass_database_up'), 0)
  assert.ok(Number.isNaN(await value(rig, 'sandglass_sandboxes{status="ready"}')))
  await postgres.current.restart()
  await until('another success', async () => (await lastSuccess()) > before)
  assert.equal(await value(rig, 'sandglass_database_up'), 1)
})

test('a repeated report that counted a second start would be seen', async () => {
  using mutant = makeMutant([
    {
      file: 'hosts/reports.ts',
      replace: "if (row.observed === 'ready') return { result: ACCEPTED }\n",
      by: "if (row.observed === 'ready') return { result: ACCEPTED, startedInSeconds: 1 }\n",
    },
  ])
  await using rig = await startRig(postgres.current, { source: mutant.source })
  const host = await rig.host()
  const { body } = await rig.create()
  await host.ready(body.id, 1)
  assert.equal(await value(rig, 'sandglass_sandbox_start_duration_seconds_count{path="cold"}'), 2)
})
