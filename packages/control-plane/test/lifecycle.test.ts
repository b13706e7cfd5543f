/** A sandbox's life through the real API, a real database and simulated hosts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

/** Sums that must be back at zero once nothing runs. */
async function held(rig: Rig): Promise<object | undefined> {
  const [row] = await rig.rows(
    `SELECT (SELECT sum(memory_mb_reserved + vcpu_milli_reserved + disk_gb_reserved)::int FROM sandglass.host_capacity) AS reserved,
      (SELECT sum(running_sandboxes_used + memory_mb_used + vcpu_milli_used + disk_gb_used)::int FROM sandglass.quotas) AS quota,
      (SELECT count(*)::int FROM sandglass.assignments WHERE released_at IS NULL) AS live,
      (SELECT count(*)::int FROM sandglass.usage_intervals WHERE closed_at IS NULL) AS usage`,
  )
  return row
}
const NOTHING = { reserved: 0, quota: 0, live: 0, usage: 0 }

describe('create and delete', () => {
  test('a create is placed, started and ready; a delete ends it and gives everything back', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const created = await rig.create({ name: 'build', env: { A: 'b' }, metadata: { team: 'x' }, resources: { vcpu: 0.25 } })
    assert.equal(created.status, 201, JSON.stringify(created.body))
    const { body } = created
    assert.equal(body.status, 'ready')
    assert.equal(body.generation, 1)
    assert.deepEqual(body.resources, { vcpu: 0.25, memory_mb: 512, disk_gb: 2 })
    assert.deepEqual(body.env_names, ['A'])
    assert.deepEqual(body.isolation, { driver: 'fake', evidence: { kernel: 'simulated' } })
    assert.equal(body.host_id, host.id)
    assert.equal(created.headers.get('location'), `/v1/sandboxes/${body.id}`)
    assert.equal(created.headers.get('preference-applied'), 'wait=10')
    assert.deepEqual(host.starts[0]?.spec.env, { A: 'b' })
    assert.deepEqual(host.starts[0]?.ticket.amounts, body.resources)
    assert.notDeepEqual(await held(rig), NOTHING)
    assert.equal((await rig.remove('build')).status, 204)
    assert.equal(host.running.size, 0)
    assert.equal((await rig.get(body.id)).status, 'terminated')
    assert.deepEqual(await held(rig), NOTHING)
    const [usage] = await rig.rows('SELECT count(*)::int AS closed FROM sandglass.usage_intervals WHERE closed_at IS NOT NULL')
    assert.deepEqual(usage, { closed: 1 })
  })

  test('without a wait: 202 with the operation, which can be waited for', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ starts: ['hang'] })
    const created = await rig.create({}, { wait: 0 })
    assert.equal(created.status, 202)
    await until('the start arrives', () => host.starts.find(({ ticket }) => ticket.sandbox === created.body.id))
    await host.ready(created.body.id, 1)
    const location = created.headers.get('location') ?? ''
    assert.match(location, /^\/v1\/operations\/op/)
    const waited = await rig.call<{ status: string }>('GET', location, { headers: { prefer: 'wait=10' } })
    assert.equal(waited.body.status, 'succeeded')
    const deleted = await rig.remove(created.body.id, 0)
    assert.equal(deleted.status, 202)
    assert.equal(deleted.body.kind, 'sandbox.delete')
    assert.equal(deleted.headers.get('location'), `/v1/operations/${deleted.body.id}`)
  })

  test('a wait that is over answers 202 and nothing is lost', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ starts: ['hang'] })
    const created = await rig.create({}, { wait: 1 })
    assert.equal(created.status, 202)
    await until('it to be noted as starting', async () => (await rig.get(created.body.id)).status === 'starting')
    await host.ready(created.body.id, 1)
    assert.equal((await rig.get(created.body.id)).status, 'ready')
  })

  test('deleting twice is fine, also at the same time, and finds one operation', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body } = await rig.create()
    const answers = await Promise.all([rig.remove(body.id, 0), rig.remove(body.id, 0), rig.remove(body.id, 0)])
    assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 1)
    assert.equal((await rig.remove(body.id)).status, 204)
    assert.deepEqual(await held(rig), NOTHING)
  })

  test('a name is free at the tombstone: the same name in a tight loop', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    for (let round = 0; round < 12; round += 1) {
      const created = await rig.create({ name: 'again' })
      assert.equal(created.status, 201, JSON.stringify(created.body))
      assert.equal((await rig.create({ name: 'again' })).problem?.code, 'name_taken')
      await rig.remove('again', round % 2 === 0 ? 0 : 10)
    }
  })

  test('names stand where ids do, may be changed, and never look like an id', async () => {
    await using rig = await startRig(postgres.current)
    const { body } = await rig.create({ name: 'one' }, { wait: 0 })
    assert.equal((await rig.get('one')).id, body.id)
    const renamed = await rig.call<{ name: string; generation: number }>('PATCH', '/v1/sandboxes/one', { body: { name: 'two', metadata: { a: '1' } } })
    assert.equal(renamed.body.name, 'two')
    assert.equal(renamed.body.generation, body.generation)
    assert.equal((await rig.call('GET', '/v1/sandboxes/one')).status, 404)
    assert.equal((await rig.create({ name: 'sbl1aaaaaaaaaaaaaaaa' }, { wait: 0 })).problem?.code, 'invalid_request')
    const unnamed = await rig.call<{ name: null }>('PATCH', '/v1/sandboxes/two', { body: { name: null } })
    assert.equal(unnamed.body.name, null)
    await rig.remove(body.id, 0)
    assert.equal((await rig.call('PATCH', `/v1/sandboxes/${body.id}`, { body: { name: 'late' } })).problem?.code, 'sandbox_ended')
  })
})

describe('starts that fail', () => {
  test('a start that fails is tried again elsewhere in a later generation', async () => {
    await using rig = await startRig(postgres.current)
    const first = await rig.host({ name: 'a', starts: ['fail'], capacity: { vcpu: 1, memory_mb: 600, disk_gb: 4 } })
    const second = await rig.host({ name: 'b' })
    const created = await rig.create()
    assert.equal(created.status, 201)
    assert.equal(new Set(first.starts.map((start) => start.ticket.generation)).size, 1)
    assert.equal(second.running.get(created.body.id), created.body.generation)
    assert.equal(created.body.generation, 3)
  })

  for (const script of ['fail', 'refuse'] as const) {
    test(`after ${LIMITS.startAttempts} attempts (${script}) the create fails, its wait gets the problem, and nothing is held`, async () => {
      await using rig = await startRig(postgres.current)
      const host = await rig.host({ starts: [script] })
      const created = await rig.create({}, { idempotencyKey: 'k' })
      assert.equal(created.status, 500)
      assert.equal(created.problem?.code, 'sandbox_start_failed')
      assert.match(created.problem?.detail ?? '', script === 'fail' ? /start_failed: the runtime said no/ : /start_refused: no_space: the disk is full/)
      assert.equal(new Set(host.starts.map((start) => start.ticket.generation)).size, LIMITS.startAttempts)
      const [row] = await rig.rows<{ id: string; desired: string; observed: string }>('SELECT id, desired, observed FROM sandglass.sandboxes')
      assert.deepEqual({ desired: row?.desired, observed: row?.observed }, { desired: 'stopped', observed: 'failed' })
      await until('everything to be given back', async () => JSON.stringify(await held(rig)) === JSON.stringify(NOTHING))
      const replayed = await rig.create({}, { idempotencyKey: 'k' })
      assert.equal(replayed.problem?.code, 'sandbox_start_failed')
      assert.equal(replayed.headers.get('idempotency-replayed'), 'true')
      assert.equal((await rig.remove(row?.id ?? '')).status, 204)
    })
  }

  test('a start that hangs is given up by time and released by proof only', async () => {
    await using rig = await startRig(postgres.current, { timing: { startTimeoutMs: 100, sweepMs: 50, resendMs: 50 } })
    const host = await rig.host({ starts: ['hang'], provesEnds: false })
    const created = await rig.create({}, { wait: 0 })
    await until('an end order', () => host.ends[0])
    assert.equal((await rig.get(created.body.id)).status, 'pending')
    assert.equal(
      host.starts.every((start) => start.ticket.generation === 1),
      true,
    )
    host.provesEnds = true
    await until('the create to fail', async () => (await rig.get(created.body.id)).status === 'failed')
    assert.match((await rig.get(created.body.id)).status_reason ?? '', /^start_timeout: /)
    await until('everything to be given back', async () => JSON.stringify(await held(rig)) === JSON.stringify(NOTHING))
  })

  test('an expired ticket is minted again and costs no attempt', async () => {
    await using rig = await startRig(postgres.current, { timing: { sweepMs: 50, resendMs: 20 } })
    const host = await rig.host({ starts: ['hang'] })
    const created = await rig.create({}, { wait: 0 })
    await until('the ticket', () => host.starts[0])
    await host.report([{ type: 'refused', sandbox: created.body.id, generation: 1, code: 'ticket_expired', detail: '' }])
    await until('another ticket', () => host.starts.length > 1)
    assert.equal((await rig.get(created.body.id)).generation, 1)
  })
})

describe('runtimes that go away', () => {
  test('a runtime that ended by itself is failed, not restarted, and released', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const { body } = await rig.create()
    await host.ended(body.id, 1, 'runtime_exited', 'signal 9')
    const now = await rig.get(body.id)
    assert.equal(now.status, 'failed')
    assert.equal(now.desired, 'stopped')
    assert.equal(now.status_reason, 'runtime_exited: signal 9')
    assert.equal(now.generation, 2)
    assert.deepEqual(await held(rig), NOTHING)
    assert.equal((await rig.remove(body.id)).status, 204)
  })

  test('a rebooted host registers anew: what it held is released, what was ready is failed, what was starting starts again', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const ready = (await rig.create()).body
    host.script('hang')
    const starting = (await rig.create({}, { wait: 0 })).body
    await until('the second ticket', () => host.starts.find((start) => start.ticket.sandbox === starting.id))
    host.script('ready')
    await host.reboot()
    assert.equal((await rig.get(ready.id)).status, 'failed')
    assert.match((await rig.get(ready.id)).status_reason ?? '', /^host_restarted: /)
    await until('the other to be ready', async () => (await rig.get(starting.id)).status === 'ready')
    assert.equal(host.starts.at(-1)?.ticket.epoch, 2)
  })

  test('an agent that restarts under the same boot keeps its epoch and its sandboxes', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const { body } = await rig.create()
    await host.leave()
    const again = await host.register(host.epoch - 1)
    assert.equal(again.epoch, 1)
    await host.watch()
    assert.equal((await rig.get(body.id)).status, 'ready')
  })
})

describe('late, repeated and reordered reports', () => {
  test('ready twice and ended twice change nothing more', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const { body } = await rig.create()
    assert.deepEqual(await host.ready(body.id, 1), { outcome: 'accepted', code: null })
    await rig.remove(body.id)
    assert.deepEqual(await host.ended(body.id, 2), { outcome: 'accepted', code: null })
    assert.deepEqual(await held(rig), NOTHING)
  })

  test('a ready report that comes after the delete is stale and leaves an audit row; the end is still awaited', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ starts: ['hang'], provesEnds: false })
    const { body } = await rig.create({}, { wait: 0 })
    await until('the ticket', () => host.starts[0])
    await rig.remove(body.id, 0)
    assert.deepEqual(await host.ready(body.id, 1), { outcome: 'stale', code: 'stale_generation' })
    const audit = await rig.rows("SELECT subject FROM sandglass.audit_log WHERE action = 'report.late'")
    assert.deepEqual(audit, [{ subject: body.id }])
    assert.equal((await rig.get(body.id)).status, 'terminating')
    await host.ended(body.id, 2)
    assert.equal((await rig.get(body.id)).status, 'terminated')
    assert.deepEqual(await held(rig), NOTHING)
  })

  test('a report about a sandbox of another host is stale', async () => {
    await using rig = await startRig(postgres.current)
    const first = await rig.host({ starts: ['hang'] })
    const { body } = await rig.create({}, { wait: 0 })
    await until('the ticket', () => first.starts[0])
    const second = await rig.host({ name: 'other' })
    assert.deepEqual(await second.ready(body.id, 1), { outcome: 'stale', code: 'stale_generation' })
    assert.deepEqual(await second.ended(body.id, 9), { outcome: 'accepted', code: null })
    await until('it to be still starting', async () => (await rig.get(body.id)).status === 'starting')
  })

  test('orders are repeated until they are answered, and after a reconnect', async () => {
    await using rig = await startRig(postgres.current, { timing: { sweepMs: 50, resendMs: 50 } })
    const host = await rig.host({ starts: ['hang'] })
    const { body } = await rig.create({}, { wait: 0 })
    await until('three tickets', () => host.starts.length >= 3)
    await host.leave()
    const before = host.starts.length
    await host.watch()
    assert.ok(host.starts.length > before, 'orders that are due come before synced')
    await host.ready(body.id, 1)
    const ready = host.starts.length
    await rig.remove(body.id)
    assert.ok(host.starts.length <= ready + 1)
  })
})

describe('delete works from every state', () => {
  const cases: [name: string, bring: (rig: Rig) => Promise<string>][] = [
    ['pending', async (rig) => (await rig.create({}, { wait: 0 })).body.id],
    [
      'starting',
      async (rig) => {
        const host = await rig.host({ starts: ['hang'] })
        const { body } = await rig.create({}, { wait: 0 })
        await until('the ticket', () => host.starts[0])
        return body.id
      },
    ],
    [
      'ready',
      async (rig) => {
        await rig.host()
        return (await rig.create()).body.id
      },
    ],
    [
      'failed',
      async (rig) => {
        const host = await rig.host()
        const { body } = await rig.create()
        await host.ended(body.id, 1, 'runtime_exited')
        return body.id
      },
    ],
    [
      'pending',
      async (rig) => {
        const host = await rig.host({ starts: ['refuse'], provesEnds: false })
        const { body } = await rig.create({}, { wait: 0 })
        await until('the refusal', async () => (await rig.get(body.id)).generation === 2)
        host.provesEnds = true
        return body.id
      },
    ],
  ]
  for (const [index, [name, bring]] of cases.entries()) {
    test(`${index + 1}: ${name}`, async () => {
      await using rig = await startRig(postgres.current)
      const id = await bring(rig)
      await until(name, async () => (await rig.get(id)).status === name)
      assert.equal((await rig.remove(id)).status, 204)
      assert.equal((await rig.get(id)).status, 'terminated')
      const { reserved, ...rest } = { reserved: 0, ...(await held(rig)) }
      assert.deepEqual({ ...rest, reserved: reserved ?? 0 }, NOTHING)
    })
  }

  test('a create that was waited for ends with its sandbox', async () => {
    await using rig = await startRig(postgres.current)
    const creating = rig.create({ name: 'short' })
    await until('the sandbox', async () => (await rig.call('GET', '/v1/sandboxes/short')).status === 200)
    await rig.remove('short')
    assert.equal((await creating).problem?.code, 'sandbox_ended')
  })
})

describe('time to live', () => {
  test('a sandbox past its deadline is deleted, and says why', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body } = await rig.create({ ttl_seconds: 60 })
    await rig.rows('UPDATE sandglass.sandboxes SET expires_at = clock_timestamp()')
    await until('its end', async () => (await rig.get(body.id)).status === 'terminated')
    assert.match((await rig.get(body.id)).status_reason ?? '', /^ttl_expired: /)
    assert.deepEqual(await held(rig), NOTHING)
    const [audit] = await rig.rows("SELECT actor_type, actor_id FROM sandglass.audit_log WHERE action = 'sandbox.delete'")
    assert.deepEqual(audit, { actor_type: 'system', actor_id: 'ttl' })
  })

  test('extend moves the deadline further and never nearer; reads leave it alone', async () => {
    await using rig = await startRig(postgres.current)
    const { body } = await rig.create({ ttl_seconds: 600 }, { wait: 0 })
    const extend = async (ttl_seconds: number) =>
      (await rig.call<{ expires_at: string }>('POST', `/v1/sandboxes/${body.id}/extend`, { body: { ttl_seconds } })).body.expires_at
    assert.equal(await extend(60), body.expires_at)
    const later = await extend(1_200)
    assert.ok(Date.parse(later) > Date.parse(body.expires_at) + 500_000)
    await rig.get(body.id)
    await rig.call('GET', '/v1/sandboxes')
    assert.equal((await rig.get(body.id)).expires_at, later)
  })
})
