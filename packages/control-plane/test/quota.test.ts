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
  assert.equal((await rig.create({}, { wait: 0 })).status, 202)
})
