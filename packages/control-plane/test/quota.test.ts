/** Quotas are exact, whatever runs at the same time, and come back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@sandglass/testkit'
import { startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

test('100 parallel creates at quota 10 give exactly 10', async () => {
  await using rig = await startRig(postgres.current)
  await rig.host({ capacity: { vcpu: 100, memory_mb: 100_000, disk_gb: 1_000 } })
  await rig.rows('UPDATE sandglass.quotas SET running_sandboxes_limit = 10')
  const answers = await Promise.all(Array.from({ length: 100 }, () => rig.create({}, { wait: 0 })))
  // A create that nobody waits for may be ready all the same when it is answered.
  const made = answers.filter((answer) => answer.status === 202 || answer.status === 201)
  assert.deepEqual([made.length, answers.filter((answer) => answer.status === 429).length], [10, 90])
  const refused = answers.find((answer) => answer.status === 429)
  assert.equal(refused?.problem?.code, 'quota_exceeded')
  assert.deepEqual(refused?.problem?.limit, { name: 'running_sandboxes', value: 10 })
  assert.match(refused?.problem?.detail ?? '', /^Tenant default runs 10 of 10 sandboxes\. End one, or have the operator raise the tenant’s row in `quotas`\.$/)
  assert.notEqual(refused?.headers.get('retry-after'), null)
  await Promise.all(made.map((answer) => rig.remove(answer.body.id)))
  assert.deepEqual(await rig.rows('SELECT running_sandboxes_used AS used, memory_mb_used::int AS memory FROM sandglass.quotas'), [{ used: 0, memory: 0 }])
  assert.equal((await rig.create()).status, 201)
})

test('each resource is exact too, over two control planes', async () => {
  await using first = await startRig(postgres.current)
  await using second = await startRig(postgres.current, { twinOf: first })
  for (const limit of ['vcpu_milli_limit = 10 * 500', 'memory_mb_limit = 10 * 512', 'disk_gb_limit = 10 * 2']) {
    await first.rows(`UPDATE sandglass.quotas SET ${limit}`)
    const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? first : second).create({}, { wait: 0 })))
    const made = answers.filter(({ status }) => status === 202)
    assert.deepEqual([made.length, answers.filter(({ status }) => status === 429).length], [10, 30], limit)
    await Promise.all(made.map(({ body }, index) => (index % 2 === 0 ? second : first).remove(body.id)))
    await first.rows('UPDATE sandglass.quotas SET vcpu_milli_limit = 1000000, memory_mb_limit = 1000000, disk_gb_limit = 1000000')
  }
  assert.deepEqual(await first.rows('SELECT vcpu_milli_used::int AS vcpu, memory_mb_used::int AS memory, disk_gb_used::int AS disk FROM sandglass.quotas'), [
    { vcpu: 0, memory: 0, disk: 0 },
  ])
})

test('resources are counted each, and the one that is short is named', async () => {
  await using rig = await startRig(postgres.current)
  await rig.rows('UPDATE sandglass.quotas SET vcpu_milli_limit = 1500, memory_mb_limit = 2000, disk_gb_limit = 9')
  assert.equal((await rig.create({ resources: { vcpu: 1.01, memory_mb: 1_000 } }, { wait: 0 })).status, 202)
  const ask = async (resources: object) => (await rig.create({ resources }, { wait: 0 })).problem
  assert.deepEqual((await ask({ vcpu: 0.5 }))?.limit, { name: 'vcpu', value: 1.5 })
  assert.deepEqual((await ask({ vcpu: 0.1, memory_mb: 1_001 }))?.limit, { name: 'memory_mb', value: 2_000 })
  assert.deepEqual((await ask({ vcpu: 0.1, disk_gb: 8 }))?.limit, { name: 'disk_gb', value: 9 })
  assert.equal((await rig.create({ resources: { vcpu: 0.49, memory_mb: 1_000, disk_gb: 7 } }, { wait: 0 })).status, 202)
})

test('one tenant does not use another one’s quota', async () => {
  await using rig = await startRig(postgres.current)
  const acme = await rig.newKey('acme', 'member')
  await rig.rows("UPDATE sandglass.quotas SET running_sandboxes_limit = 1 WHERE tenant_id IN (SELECT id FROM sandglass.tenants WHERE name = 'default')")
  assert.equal((await rig.create({}, { wait: 0 })).status, 202)
  assert.equal((await rig.create({}, { wait: 0 })).status, 429)
  assert.equal((await rig.create({}, { wait: 0, key: acme })).status, 202)
})

test('a quota is held until the end is proved', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host({ provesEnds: false })
  await rig.rows('UPDATE sandglass.quotas SET running_sandboxes_limit = 1')
  const { body } = await rig.create()
  await rig.remove(body.id, 0)
  assert.equal((await rig.create({}, { wait: 0 })).status, 429)
  await until('the end order', () => host.ends[0])
  await host.ended(body.id, 2)
  // A create that nobody waits for may be ready all the same when it is answered.
  assert.ok([201, 202].includes((await rig.create({}, { wait: 0 })).status))
})

test('what is stopped or failed and kept has a limit: past it nothing is created, until something is deleted or started', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host()
  await rig.rows('UPDATE sandglass.quotas SET kept_sandboxes_limit = 2')
  const made = await Promise.all(['a', 'b', 'c'].map((name) => rig.create({ name })))
  assert.deepEqual(
    made.map(({ status }) => status),
    [201, 201, 201],
  )
  const kept = async () => (await rig.rows<{ kept: number }>('SELECT kept_sandboxes_used AS kept FROM sandglass.quotas'))[0]?.kept
  await rig.run('stop', 'a')
  assert.equal((await rig.create({ name: 'd' })).status, 201)
  host.running.delete(made[1]?.body.id ?? '')
  await host.ended(made[1]?.body.id ?? '', made[1]?.body.generation ?? 0, 'runtime_exited')
  // A stop is never refused.
  assert.equal((await rig.run('stop', 'c')).status, 200)
  assert.deepEqual([(await rig.get('b')).status, await kept()], ['failed', 3])
  const { status, problem } = await rig.create()
  assert.deepEqual([status, problem?.code, problem?.limit], [429, 'quota_exceeded', { name: 'kept_sandboxes', value: 2 }])
  assert.match(problem?.detail ?? '', /^Tenant default keeps 3 of 2 sandboxes that are stopped or failed\. Delete one, or have the operator raise /)
  // A start only makes it less.
  assert.deepEqual([(await rig.run('start', 'a')).status, await kept()], [200, 2])
  assert.equal((await rig.create()).status, 429)
  await rig.remove('b')
  assert.deepEqual([await kept(), (await rig.create()).status], [1, 201])
})

test('what is kept is counted exactly, whatever starts, stops and deletes meet', async () => {
  await using rig = await startRig(postgres.current)
  await rig.host()
  const made = await Promise.all(Array.from({ length: 4 }, () => rig.create()))
  const calls = Array.from({ length: 6 }, (_, index) =>
    made.map(({ body }, which) => {
      if (index === 5 && which < 2) return rig.remove(body.id, 0)
      return rig.run((index + which) % 2 === 0 ? 'stop' : 'start', body.id, { wait: 0 })
    }),
  )
  await Promise.all(calls.flat())
  for (const { body } of made.slice(2)) await rig.run('stop', body.id)
  const figures = () =>
    rig.rows<{ running: number; kept: number; stopped: number }>(
      `SELECT running_sandboxes_used AS running, kept_sandboxes_used AS kept,
        (SELECT count(*)::int FROM sandglass.sandboxes WHERE desired = 'stopped') AS stopped FROM sandglass.quotas`,
    )
  const settled = { running: 0, kept: 2, stopped: 2 }
  await until('everything to be stopped or deleted', async () => (await figures())[0]?.running === 0)
  assert.deepEqual(await figures(), [settled])
  for (const { body } of made) await rig.remove(body.id)
  assert.deepEqual(await figures(), [{ running: 0, kept: 0, stopped: 0 }])
})
