/** Many schedulers, few hosts: nothing is sold twice, what waits says why, and room that comes free is used. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '@sandglass/testkit'
import { HostDesk } from '../src/hosts/host-desk.ts'
import { realWorld } from '../src/index.ts'
import { collectIdempotencyKeys } from '../src/reconcilers/idempotency-gc.ts'
import { reconcileOutbox } from '../src/reconcilers/outbox-relay.ts'
import { reconcilePlacement } from '../src/reconcilers/placement.ts'
import { reconcileReleases } from '../src/reconcilers/release.ts'
import { reconcileStarts } from '../src/reconcilers/start-convergence.ts'
import { startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

describe('races', () => {
  test('schedulers that plan at the same time never oversell, and place all that fits', async () => {
    await using rig = await startRig(postgres.current)
    for (const name of ['a', 'b', 'c']) await rig.host({ name, capacity: { vcpu: 2, memory_mb: 3_000, disk_gb: 20 }, starts: ['hang'] })
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
    await Promise.all(Array.from({ length: 30 }, () => rig.create({}, { wait: 0 })))
    await rig.stop()
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = false')
    const context = { config: rig.config, world: realWorld, db: rig.db.for('reconcilers'), desk: new HostDesk() }
    const rounds = async (): Promise<void> => {
      for (let round = 0; round < 8; round += 1) await reconcilePlacement(context)
    }
    await Promise.all([rounds(), rounds(), rounds(), rounds(), rounds(), rounds()])
    const hosts = await rig.rows<{ reserved: number; sum: number }>(
      `SELECT memory_mb_reserved::int AS reserved, (SELECT coalesce(sum(memory_mb), 0)::int FROM sandglass.assignments a WHERE a.host_id = c.host_id AND released_at IS NULL) AS sum
       FROM sandglass.host_capacity c`,
    )
    for (const host of hosts) assert.ok(host.reserved <= 3_000 && host.reserved === host.sum, JSON.stringify(host))
    assert.deepEqual(
      await rig.rows('SELECT count(*)::int AS live, count(DISTINCT sandbox_id)::int AS sandboxes FROM sandglass.assignments WHERE released_at IS NULL'),
      [{ live: 15, sandboxes: 15 }],
    )
    const [waiting] = await rig.rows<{ waiting: number }>(
      "SELECT count(*)::int AS waiting FROM sandglass.sandboxes WHERE observed = 'pending' AND unschedulable_reason LIKE 'no_capacity: %3 hosts full'",
    )
    assert.equal(waiting?.waiting, 15)
  })

  test('two control planes over one database: one sandbox each, woken by notification across them', async () => {
    await using first = await startRig(postgres.current, { timing: { sweepMs: 60_000 } })
    await using second = await startRig(postgres.current, { twinOf: first, timing: { sweepMs: 60_000 } })
    await first.host({ capacity: { vcpu: 20, memory_mb: 20_000, disk_gb: 100 } })
    await until('both to listen', async () => (await first.call('GET', '/readyz')).status === 200 && (await second.call('GET', '/readyz')).status === 200)
    const began = performance.now()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? first : second).create({}, { wait: 50, idempotencyKey: `k${index % 10}` })),
    )
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [201])
    assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 10)
    assert.ok(performance.now() - began < 50_000, 'faster than any sweep')
    await Promise.all([...new Set(answers.map((answer) => answer.body.id))].map((id) => second.remove(id, 20)))
    assert.deepEqual(await first.rows('SELECT memory_mb_reserved::int AS reserved FROM sandglass.host_capacity'), [{ reserved: 0 }])
  })
})

test('a start that stands in line behind others is not late while they are done, and is once they are', async () => {
  await using rig = await startRig(postgres.current, { timing: { startTimeoutMs: 60_000, sweepMs: 3_600_000 } })
  await rig.settled()
  const host = await rig.host({ starts: ['hang'] })
  const ticketed = (id: string) => until(`the ticket of ${id}`, () => host.starts.find((start) => start.ticket.sandbox === id))
  const first = (await rig.create({}, { wait: 0 })).body.id
  await ticketed(first)
  const second = (await rig.create({}, { wait: 0 })).body.id
  await ticketed(second)
  const age = (id: string) => rig.rows("UPDATE sandglass.assignments SET created_at = created_at - interval '10 min' WHERE sandbox_id = $1", [id])
  await age(first)
  await age(second)
  await host.ready(first, 1)
  const context = { config: rig.config, world: realWorld, db: rig.db.for('reconcilers') }
  assert.equal((await reconcileStarts(context)).actions, 0, 'the host has just finished the one before')
  await rig.remove(first)
  assert.equal((await reconcileStarts(context)).actions, 0, 'also when that is over by now')
  await rig.rows("UPDATE sandglass.usage_intervals SET opened_at = opened_at - interval '2 min'")
  assert.equal((await reconcileStarts(context)).actions, 1, 'nothing was done for a minute')
  assert.equal((await rig.get(second)).status, 'pending')
  const third = (await rig.create({}, { wait: 0 })).body.id
  await ticketed(third)
  await age(third)
  host.script('ready')
  assert.equal((await rig.create()).status, 201)
  await rig.rows("UPDATE sandglass.assignments SET released_at = released_at - interval '2 min'")
  assert.equal((await reconcileStarts(context)).actions, 1, 'what was placed later does not hold it up')
})

test('losing every wake-up costs time, never correctness', async () => {
  await using rig = await startRig(postgres.current, { world: { hint: () => undefined } })
  const host = await rig.host()
  const created = await rig.create()
  assert.equal(created.status, 201)
  assert.equal((await rig.remove(created.body.id)).status, 204)
  assert.equal(host.running.size, 0)
})

test('what a host held in earlier epochs is released once, by however many ask', async () => {
  await using rig = await startRig(postgres.current)
  await rig.host()
  const ids = await Promise.all([1, 2, 3].map(async () => (await rig.create()).body.id))
  await rig.stop()
  await rig.rows('UPDATE sandglass.host_leases SET epoch = epoch + 1')
  const context = { config: rig.config, db: rig.db.for('reconcilers') }
  const outcomes = await Promise.all([reconcileReleases(context), reconcileReleases(context), reconcileReleases(context)])
  assert.equal(
    outcomes.reduce((sum, outcome) => sum + outcome.actions, 0),
    ids.length,
  )
  assert.equal((await reconcileReleases(context)).actions, 0)
  const left = await rig.rows(
    'SELECT memory_mb_reserved::int AS reserved, (SELECT running_sandboxes_used FROM sandglass.quotas) AS quota FROM sandglass.host_capacity',
  )
  assert.deepEqual(left, [{ reserved: 0, quota: 0 }])
})

test('relays share the outbox, and old keys are collected, in pieces', async () => {
  await using rig = await startRig(postgres.current)
  await rig.stop()
  await rig.rows("INSERT INTO sandglass.outbox (origin, topic, key) SELECT 'x', 'placement', n::text FROM generate_series(1, 450) n")
  await rig.rows(
    `INSERT INTO sandglass.idempotency_keys (tenant_id, route, key_sha256, body_sha256, subject_id, created_at)
     SELECT 't', 'r', n::text, '', '', clock_timestamp() - interval '25 h' FROM generate_series(1, 1200) n`,
  )
  const context = { config: rig.config, world: realWorld, db: rig.db.for('reconcilers') }
  const relayed = await Promise.all(Array.from({ length: 4 }, () => reconcileOutbox(context)))
  assert.equal(
    relayed.reduce((sum, outcome) => sum + outcome.actions, 0),
    450,
  )
  assert.deepEqual(await collectIdempotencyKeys(context.db), { actions: 1_000, nextInMs: 0 })
  assert.deepEqual(await collectIdempotencyKeys(context.db), { actions: 200, nextInMs: undefined })
})

describe('what cannot be placed', () => {
  test('waits with a reason, and is placed as room comes free', async () => {
    await using rig = await startRig(postgres.current)
    const none = await rig.create({}, { wait: 0 })
    await until('a reason', async () => (await rig.get(none.body.id)).unschedulable_reason)
    assert.match((await rig.get(none.body.id)).unschedulable_reason ?? '', /^no_host: /)
    await rig.host({ capacity: { vcpu: 1, memory_mb: 1_000, disk_gb: 10 } })
    await until('it to be placed', async () => (await rig.get(none.body.id)).status === 'ready')
    assert.equal((await rig.get(none.body.id)).unschedulable_reason, null)
    const waiting = await rig.create({ resources: { memory_mb: 600 } }, { wait: 0 })
    await until('a reason', async () => (await rig.get(waiting.body.id)).unschedulable_reason)
    assert.match((await rig.get(waiting.body.id)).unschedulable_reason ?? '', /^no_capacity: needs 0\.5 vCPU, 600 MB of memory and 2 GB of disk; 1 host full$/)
    await rig.remove(none.body.id)
    await until('it to be placed', async () => (await rig.get(waiting.body.id)).status === 'ready')
  })

  test('what no host could ever fit is refused at once', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host({ capacity: { vcpu: 2, memory_mb: 23_552, disk_gb: 10 } })
    const answer = await rig.create({ resources: { vcpu: 8, memory_mb: 999_999 } })
    assert.equal(answer.status, 422)
    assert.equal(answer.problem?.code, 'unschedulable_never')
    assert.equal(answer.problem?.detail, 'no host can ever fit 999,999 MB of memory (largest: 23,552 MB on host-1).')
    assert.deepEqual(await rig.rows('SELECT id FROM sandglass.sandboxes'), [])
  })

  test('processors are offered several times, memory once', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host({ capacity: { vcpu: 2, memory_mb: 8_000, disk_gb: 100 } })
    const [capacity] = await rig.rows('SELECT vcpu_milli_capacity::int AS vcpu, memory_mb_capacity::int AS memory FROM sandglass.host_capacity')
    assert.deepEqual(capacity, { vcpu: 8_000, memory: 8_000 })
    assert.equal((await rig.create({ resources: { vcpu: 8 } })).status, 201)
    assert.equal((await rig.create({ resources: { vcpu: 9 } })).problem?.code, 'unschedulable_never')
  })

  test('an isolation that no host proved is refused, never replaced', async () => {
    await using rig = await startRig(postgres.current)
    assert.equal((await rig.create({ isolation: 'auto' }, { wait: 0 })).status, 202)
    assert.equal((await rig.create({ isolation: 'microvm' }, { wait: 0 })).problem?.code, 'isolation_unavailable')
    await rig.host()
    assert.equal((await rig.create({ isolation: 'auto' }, { wait: 0 })).problem?.code, 'isolation_unavailable')
    assert.equal((await rig.create({ isolation: 'gvisor' }, { wait: 0 })).problem?.code, 'isolation_unavailable')
    const proved = { name: 'gvisor', proved: true, version: '1', detail: '', probe_ms: 1 } as const
    await rig.host({ name: 'g', drivers: [proved] })
    const created = await rig.create({ isolation: 'auto' })
    assert.equal(created.body.isolation?.driver, 'gvisor')
    assert.equal((await rig.create({ network: { mode: 'open' } })).problem?.code, 'network_mode_unavailable')
    assert.equal((await rig.create({ template: 'nope' })).problem?.code, 'template_not_found')
  })

  test('a lost or a cordoned host gets nothing new and loses nothing', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const { body } = await rig.create()
    await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '1 h'")
    // Until then a create may go by hosts as they were a moment ago.
    const readAgainMs = performance.now() + 150
    await until('hosts to be read again', () => performance.now() > readAgainMs)
    const waiting = await rig.create({}, { wait: 0 })
    await until('a reason', async () => (await rig.get(waiting.body.id)).unschedulable_reason)
    assert.match((await rig.get(waiting.body.id)).unschedulable_reason ?? '', /1 host not heard of for a lease$/)
    assert.equal((await rig.get(body.id)).status, 'ready')
    await host.renew()
    await until('it to be placed', async () => (await rig.get(waiting.body.id)).status === 'ready')
  })
})
