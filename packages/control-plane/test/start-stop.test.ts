/** Starting and stopping through the real API, a real database and simulated hosts: each transition, twice, at once, and against delete. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS, SANDBOX_STATUSES, type Sandbox, type SandboxStatus } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { STATES } from '../src/domain/sandbox/transitions.ts'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

type Held = { readonly reserved: number; readonly quota: number; readonly live: number; readonly usage: number }
const NOTHING: Held = { reserved: 0, quota: 0, live: 0, usage: 0 }

/** Memory reserved on hosts and of the quota, assignments and usage intervals that are open. */
async function held(rig: Rig): Promise<Held | undefined> {
  const [row] = await rig.rows<Held>(
    `SELECT coalesce((SELECT sum(memory_mb_reserved)::int FROM sandglass.host_capacity), 0) AS reserved,
      (SELECT sum(memory_mb_used)::int FROM sandglass.quotas) AS quota,
      (SELECT count(*)::int FROM sandglass.assignments WHERE released_at IS NULL) AS live,
      (SELECT count(*)::int FROM sandglass.usage_intervals WHERE closed_at IS NULL) AS usage`,
  )
  return row
}
const ONE: Held = { reserved: 512, quota: 512, live: 1, usage: 1 }

const audited = async (rig: Rig, id: string): Promise<string[]> =>
  (await rig.rows<{ action: string }>("SELECT action FROM sandglass.audit_log WHERE subject = $1 AND action LIKE 'sandbox.%' ORDER BY at", [id])).map(
    ({ action }) => action,
  )
const settled = (rig: Rig, id: string, status: SandboxStatus): Promise<Sandbox> =>
  until(`${id} to be ${status}`, async () => {
    const now = await rig.get(id)
    return now.status === status ? now : undefined
  })

describe('stop', () => {
  test('the record stays; compute, what was written and everything held go, and the answer says so', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const { body: made } = await rig.create({ name: 'box', env: { A: 'b' }, metadata: { team: 'x' } })
    assert.equal(made.writable_layer, 'present')
    assert.deepEqual(await held(rig), ONE)
    const { status, body } = await rig.run('stop', 'box')
    assert.equal(status, 200, JSON.stringify(body))
    const { id, name, env_names, metadata, desired, generation, host_id, writable_layer } = body
    assert.deepEqual(
      { id, name, env_names, metadata, desired, generation, host_id, writable_layer, status: body.status },
      {
        id: made.id,
        name: 'box',
        env_names: ['A'],
        metadata: { team: 'x' },
        desired: 'stopped',
        generation: made.generation + 1,
        host_id: null,
        writable_layer: 'gone',
        status: 'stopped',
      },
    )
    assert.match(body.status_reason ?? '', /what was written in it is gone/)
    assert.ok(body.ended_at !== null)
    assert.equal(host.ends[0]?.upto, generation)
    assert.equal(host.running.size, 0)
    assert.deepEqual(await held(rig), NOTHING)
    assert.deepEqual(await audited(rig, id), ['sandbox.create', 'sandbox.stop'])
  })

  test('until the end is proved it is stopping, and everything is still held; then it is stopped by itself', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ provesEnds: false })
    const { body: made } = await rig.create()
    const asked = await rig.run('stop', made.id, { wait: 0 })
    assert.deepEqual([asked.status, asked.body.status, asked.body.writable_layer], [202, 'stopping', 'gone'])
    const location = asked.headers.get('location') ?? ''
    assert.equal(location, `/v1/operations/${asked.body.operation_id}`)
    assert.equal((await rig.run('stop', made.id, { wait: 1 })).status, 202)
    assert.deepEqual(await held(rig), ONE)
    await host.ended(made.id, asked.body.generation)
    assert.deepEqual((await rig.operation(location.split('/').at(-1) ?? '')).status, 'succeeded')
    assert.deepEqual([(await rig.get(made.id)).status, await held(rig)], ['stopped', NOTHING])
  })

  test('twice, one after the other and at once: one generation, one audit row, done each time', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body: made } = await rig.create()
    const answers = await Promise.all(Array.from({ length: 8 }, () => rig.run('stop', made.id)))
    for (const { status, body } of [...answers, await rig.run('stop', made.id, { wait: 0 })]) {
      assert.deepEqual([status, body.status, body.generation], [200, 'stopped', made.generation + 1])
    }
    assert.deepEqual(await audited(rig, made.id), ['sandbox.create', 'sandbox.stop'])
  })

  test('one that waits for a host is stopped at once, its create is told, and no host gets it', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
    const creating = rig.create({ name: 'box' })
    await until('the row', async () => ((await rig.call('GET', '/v1/sandboxes/box')).status === 200 ? true : undefined))
    const { status, body } = await rig.run('stop', 'box', { wait: 0 })
    assert.deepEqual([status, body.status], [200, 'stopped'])
    const created = await creating
    assert.deepEqual([created.status, created.problem?.code], [409, 'sandbox_stopped'])
    assert.deepEqual(await held(rig), NOTHING)
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = false')
    await rig.create()
    assert.deepEqual([(await rig.get('box')).status, host.starts.filter(({ ticket }) => ticket.sandbox === body.id)], ['stopped', []])
  })

  test('a start that is on its way is stale: its late ready is refused, its create is told', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ starts: ['hang'], provesEnds: false })
    const creating = rig.create({ name: 'box' })
    const { ticket } = await until('the ticket', () => host.starts[0])
    await rig.run('stop', 'box', { wait: 0 })
    assert.equal((await creating).problem?.code, 'sandbox_stopped')
    assert.deepEqual(await host.ready(ticket.sandbox, ticket.generation), { outcome: 'stale', code: 'stale_generation' })
    await host.ended(ticket.sandbox, (await rig.get('box')).generation)
    assert.deepEqual([(await rig.get('box')).status, await held(rig)], ['stopped', NOTHING])
  })

  test('one that failed has no compute: it stays failed, with its reason, and the answer waits for what is still held', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ starts: ['refuse'], provesEnds: false })
    await rig.create({ name: 'box' }, { wait: 0 })
    for (let attempt = 1; attempt < LIMITS.startAttempts; attempt += 1) {
      const { upto } = await until('an end order', () => host.ends[attempt - 1])
      await host.ended(host.ends[0]?.sandbox ?? '', upto)
    }
    const failed = await settled(rig, 'box', 'failed')
    const first = await rig.run('stop', 'box', { wait: 0 })
    assert.deepEqual([first.status, first.body.status, first.body.generation], [202, 'failed', failed.generation])
    const again = await rig.run('stop', 'box', { wait: 0 })
    assert.equal(again.headers.get('location'), first.headers.get('location'))
    const waiting = rig.run('stop', 'box')
    await host.ended(failed.id, failed.generation)
    assert.equal((await waiting).status, 200)
    assert.deepEqual([(await rig.run('stop', 'box')).status, (await rig.get('box')).status_reason], [200, failed.status_reason])
    assert.deepEqual(await held(rig), NOTHING)
  })
})

describe('start', () => {
  test('the same sandbox, placed anew: a later generation, what the last run said of itself is gone', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const { body: made } = await rig.create({ name: 'box', env: { A: 'b' } })
    const { body: stopped } = await rig.run('stop', 'box')
    const { status, body } = await rig.run('start', 'box')
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.id, body.status, body.desired, body.writable_layer], [made.id, 'ready', 'running', 'present'])
    // One for the start, one for the placement.
    assert.equal(body.generation, stopped.generation + 2)
    assert.deepEqual([body.status_reason, body.ended_at, body.restarts], [null, null, 0])
    assert.deepEqual(host.starts.at(-1)?.spec.env, { A: 'b' })
    assert.equal(host.running.get(made.id), body.generation)
    assert.deepEqual(await held(rig), ONE)
    assert.deepEqual(await audited(rig, made.id), ['sandbox.create', 'sandbox.stop', 'sandbox.start'])
    assert.equal((await rig.operation(body.operation_id ?? '')).kind, 'sandbox.start')
  })

  test('twice and at once: one generation, done each time; a ready one is as it is', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body: made } = await rig.create()
    assert.deepEqual([(await rig.run('start', made.id, { wait: 0 })).status, (await rig.get(made.id)).generation], [200, made.generation])
    await rig.run('stop', made.id)
    const answers = await Promise.all(Array.from({ length: 8 }, () => rig.run('start', made.id)))
    for (const { status, body } of answers) assert.deepEqual([status, body.status, body.generation], [200, 'ready', made.generation + 3])
    assert.deepEqual(await audited(rig, made.id), ['sandbox.create', 'sandbox.stop', 'sandbox.start'])
    assert.deepEqual(await held(rig), ONE)
  })

  test('before the stop is proved: the stop is told, the quota is counted once, and nothing is placed until the proof', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ provesEnds: false })
    const { body: made } = await rig.create()
    const stopping = rig.run('stop', made.id)
    const { upto } = await until('the end order', () => host.ends[0])
    const starting = await rig.run('start', made.id, { wait: 0 })
    assert.deepEqual([starting.status, starting.body.status, starting.body.writable_layer], [202, 'pending', 'none'])
    assert.deepEqual([(await stopping).status, (await stopping).problem?.code], [409, 'operation_overtaken'])
    assert.deepEqual(await held(rig), ONE)
    // A placement has been looked for since: of another one.
    const { body: other } = await rig.create()
    assert.equal(other.status, 'ready')
    assert.equal((await rig.get(made.id)).status, 'pending')
    await rig.remove(other.id, 0)
    await host.ended(other.id, (await rig.get(other.id)).generation)
    await host.ended(made.id, upto)
    assert.equal((await settled(rig, made.id, 'ready')).generation, made.generation + 3)
    assert.deepEqual(await held(rig), ONE)
  })

  test('before the stop is proved it says what it waits for, also of a host that is lost', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ provesEnds: false })
    const { body: made } = await rig.create()
    const { body: stopping } = await rig.run('stop', made.id, { wait: 0 })
    await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '31 s'")
    const { body: started } = await rig.run('start', made.id, { wait: 0 })
    assert.match(
      started.unschedulable_reason ?? '',
      new RegExp(`^awaiting_end: host ${host.id} has not proved the end of its earlier run(, and has not been heard of for a lease)?$`),
    )
    await host.renew()
    await host.ended(made.id, stopping.generation)
    assert.equal((await settled(rig, made.id, 'ready')).unschedulable_reason, null)
    await rig.run('stop', made.id, { wait: 0 })
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
    const { body: again } = await rig.run('start', made.id, { wait: 0 })
    await host.ended(made.id, again.generation)
    await until('another reason', async () => (await rig.get(made.id)).unschedulable_reason?.startsWith('no_suitable_host: '))
    const { body: stopped } = await rig.run('stop', made.id, { wait: 0 })
    assert.deepEqual([stopped.status, stopped.unschedulable_reason], ['stopped', null])
    const { body: last } = await rig.run('start', made.id, { wait: 0 })
    assert.doesNotMatch(last.unschedulable_reason ?? '', /^awaiting_end/, 'nothing of it is left to be proved')
  })

  test('past the quota it is refused and stays stopped, with nothing changed', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body: made } = await rig.create()
    const { body: stopped } = await rig.run('stop', made.id)
    await rig.rows('UPDATE sandglass.quotas SET running_sandboxes_limit = 1')
    const { body: other } = await rig.create()
    const refused = await rig.run('start', made.id)
    assert.deepEqual([refused.status, refused.problem?.code, refused.problem?.limit], [429, 'quota_exceeded', { name: 'running_sandboxes', value: 1 }])
    const now = await rig.get(made.id)
    assert.deepEqual([now.status, now.generation, now.operation_id], ['stopped', stopped.generation, stopped.operation_id])
    await rig.remove(other.id)
    assert.equal((await rig.run('start', made.id)).status, 200)
    assert.deepEqual(await held(rig), ONE)
  })

  test('one that failed starts anew, with attempts of its own; a start that fails says why', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ starts: ['fail'] })
    const created = await rig.create({ name: 'box' })
    assert.equal(created.problem?.code, 'sandbox_start_failed')
    const failed = await rig.run('start', 'box')
    assert.deepEqual([failed.status, failed.problem?.code], [500, 'sandbox_start_failed'])
    assert.equal(host.starts.length, 2 * LIMITS.startAttempts)
    host.script('ready')
    assert.deepEqual([(await rig.run('start', 'box')).status, (await rig.get('box')).status_reason], [200, null])
    assert.deepEqual(await held(rig), ONE)
  })
})

describe('idempotency keys', () => {
  test('a repeated start is not a second one, whatever was asked for since; a key is of one sandbox and one call', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body: made } = await rig.create({ name: 'box' })
    const stop = await rig.run('stop', 'box', { idempotencyKey: 'stop-1' })
    const start = await rig.run('start', 'box', { idempotencyKey: 'start-1' })
    assert.deepEqual([stop.headers.get('idempotency-replayed'), start.body.status], [null, 'ready'])
    const late = await rig.run('stop', made.id, { idempotencyKey: 'stop-1' })
    assert.deepEqual([late.status, late.headers.get('idempotency-replayed'), late.body.status], [200, 'true', 'ready'])
    assert.equal((await rig.get('box')).generation, start.body.generation)
    const done = await rig.run('start', 'box', { idempotencyKey: 'start-2' })
    await rig.run('stop', 'box')
    const replayed = await rig.run('start', 'box', { idempotencyKey: 'start-2' })
    assert.deepEqual([done.status, replayed.status, replayed.body.status], [200, 200, 'stopped'])
    const { body: other } = await rig.create()
    assert.equal((await rig.run('stop', other.id, { idempotencyKey: 'stop-1' })).problem?.code, 'idempotency_key_reused')
    assert.equal((await rig.run('start', other.id, { idempotencyKey: 'stop-1' })).status, 200)
  })
})

describe('deadlines', () => {
  test('a stopped one is kept for the life of a record; started again it has its own life, never less than it had', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body: made } = await rig.create({ ttl_seconds: 600 })
    const inSeconds = (time: string): number => (Date.parse(time) - Date.parse(made.created_at)) / 1_000
    const { body: stopped } = await rig.run('stop', made.id)
    assert.ok(inSeconds(stopped.expires_at) >= LIMITS.stoppedLifeSeconds)
    const { body: started } = await rig.run('start', made.id)
    assert.ok(inSeconds(started.expires_at) >= 600 && inSeconds(started.expires_at) < 700, started.expires_at)
    const extended = await rig.call<Sandbox>('POST', `/v1/sandboxes/${made.id}/extend`, { body: { ttl_seconds: 7_200 } })
    await rig.run('stop', made.id)
    assert.equal((await rig.run('start', made.id)).body.expires_at, extended.body.expires_at)
  })

  test('an extension of a stopped one is of its life too: started again it has what was asked for', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body: made } = await rig.create({ ttl_seconds: 600 })
    const { body: stopped } = await rig.run('stop', made.id)
    const extended = await rig.call<Sandbox>('POST', `/v1/sandboxes/${made.id}/extend`, { body: { ttl_seconds: 86_400 } })
    assert.equal(extended.body.expires_at, stopped.expires_at, 'the record is kept for longer already')
    const seconds = (Date.parse((await rig.run('start', made.id)).body.expires_at) - Date.parse(stopped.ended_at ?? '')) / 1_000
    assert.ok(seconds >= 86_400 && seconds < 86_500, `${seconds} s`)
  })

  test('a stopped one whose deadline has passed is deleted', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host()
    const { body: made } = await rig.create()
    await rig.run('stop', made.id)
    await rig.rows("UPDATE sandglass.sandboxes SET expires_at = clock_timestamp() - interval '1 s'")
    assert.match((await settled(rig, made.id, 'terminated')).status_reason ?? '', /ttl_expired/)
  })
})

describe('every state and every call', () => {
  const DELETED = { status: 410, code: 'sandbox_ended' } as const
  const RUNNING: readonly SandboxStatus[] = ['pending', 'assigned', 'starting', 'ready']

  test('has a defined answer, with and without a live assignment', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ provesEnds: false })
    const { body: made } = await rig.create()
    await host.leave()
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
    await rig.rows('ALTER TABLE sandglass.sandboxes DISABLE TRIGGER ALL')
    const set = `UPDATE sandglass.sandboxes SET observed = $2, desired = $3, generation = 20, quota_held = true, expires_at = clock_timestamp() + interval '1 h' WHERE id = $1`
    for (const observed of SANDBOX_STATUSES) {
      for (const live of [true, false]) {
        const desired = STATES[observed].desired[0] ?? 'running'
        const put = async (): Promise<void> => {
          await rig.rows(`UPDATE sandglass.assignments SET released_at = ${live ? 'NULL' : 'clock_timestamp()'}, released_by = ${live ? 'NULL' : "'ended'"}`)
          await rig.rows("UPDATE sandglass.operations SET status = 'succeeded', problem = NULL, ended_at = clock_timestamp() WHERE status = 'pending'")
          await rig.rows("DELETE FROM sandglass.operations WHERE kind = 'sandbox.delete'")
          await rig.rows('UPDATE sandglass.quotas SET running_sandboxes_used = 1, vcpu_milli_used = 500, memory_mb_used = 512, disk_gb_used = 2')
          await rig.rows(set, [made.id, observed, desired])
        }
        const where = `${observed}, ${live ? 'live' : 'nothing live'}`
        await put()
        const stop = await rig.run('stop', made.id, { wait: 0 })
        const stopped = await rig.get(made.id)
        if (desired === 'deleted') assert.deepEqual({ status: stop.status, code: stop.problem?.code }, DELETED, where)
        else {
          assert.equal(stop.status, live ? 202 : 200, where)
          assert.deepEqual([stopped.desired, stopped.generation], ['stopped', desired === 'running' ? 21 : 20], where)
          if (desired === 'running' || observed === 'stopping') assert.equal(stopped.status, live ? 'stopping' : 'stopped', where)
        }
        await put()
        const start = await rig.run('start', made.id, { wait: 0 })
        const started = await rig.get(made.id)
        if (desired === 'deleted') assert.deepEqual({ status: start.status, code: start.problem?.code }, DELETED, where)
        else {
          assert.equal(start.status, observed === 'ready' ? 200 : 202, where)
          assert.deepEqual([started.desired, started.generation], ['running', desired === 'running' ? 20 : 21], where)
          assert.equal(started.status, RUNNING.includes(observed) ? observed : 'pending', where)
        }
        await put()
        if (desired === 'deleted') continue
        const removed = await rig.remove(made.id, 0)
        assert.deepEqual([removed.status, (await rig.get(made.id)).status], [202, live ? 'terminating' : 'terminated'], where)
      }
    }
  })

  test('one that is stopping though nothing is live comes to rest by the next stop, which ends the operation and gives the quota back', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ provesEnds: false })
    const { body: made } = await rig.create()
    const { body: stopping } = await rig.run('stop', made.id, { wait: 0 })
    await host.leave()
    await rig.rows("UPDATE sandglass.assignments SET released_at = clock_timestamp(), released_by = 'ended'")
    const { status, body } = await rig.run('stop', made.id, { wait: 0 })
    assert.deepEqual([status, body.status, body.generation], [200, 'stopped', stopping.generation])
    assert.equal((await rig.operation(stopping.operation_id ?? '')).status, 'succeeded')
    assert.equal((await held(rig))?.quota, 0)
  })

  test('a delete ends whatever a start or stop was about, and both are refused from then on', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ provesEnds: false })
    const { body: made } = await rig.create()
    const stopping = rig.run('stop', made.id)
    await until('the end order', () => host.ends[0])
    const removed = await rig.remove(made.id, 0)
    assert.deepEqual([(await stopping).status, (await stopping).problem?.code], [410, 'sandbox_ended'])
    for (const want of ['start', 'stop'] as const) assert.equal((await rig.run(want, made.id)).problem?.code, 'sandbox_ended')
    await host.ended(made.id, (await rig.get(made.id)).generation)
    assert.equal((await rig.operation(removed.body.id)).status, 'succeeded')
    assert.deepEqual([(await rig.get(made.id)).status, await held(rig)], ['terminated', NOTHING])
  })
})

describe('at once', () => {
  const CALLS = 50

  /** As clients do: on a busy machine a turn at the lock may take longer than a request waits for it. */
  const insist = (call: () => ReturnType<Rig['run']>): ReturnType<Rig['run']> =>
    until('an answer', async () => {
      const answer = await call()
      return answer.status < 500 ? answer : undefined
    })

  test(`${CALLS} starts and ${CALLS} stops over two control planes: whoever came last at the lock decides, and no two runtimes are ever held`, async () => {
    await using rig = await startRig(postgres.current)
    await using twin = await startRig(postgres.current, { twinOf: rig })
    const host = await rig.host({ persistent: true })
    const { body: made } = await rig.create({}, { wait: 10 })
    const calls = Array.from({ length: 2 * CALLS }, (_, index) => {
      const by = index % 4 < 2 ? rig : twin
      return insist(() => by.run(index % 2 === 0 ? 'stop' : 'start', made.id, { wait: index % 3 === 0 ? 20 : 0, idempotencyKey: `key-${index}` }))
    })
    for (const { status, problem } of await Promise.all(calls)) {
      assert.ok(status === 200 || status === 202 || ['operation_overtaken', 'sandbox_stopped'].includes(problem?.code ?? ''), JSON.stringify(problem))
    }
    const actions = (await audited(rig, made.id)).slice(1)
    assert.ok(actions.length > 1, 'the calls met')
    // What is wanted already changes nothing, so those that did change something take turns.
    for (const [index, action] of actions.entries()) assert.equal(action, index % 2 === 0 ? 'sandbox.stop' : 'sandbox.start')
    const last = actions.at(-1) === 'sandbox.start' ? 'ready' : 'stopped'
    const end = await settled(rig, made.id, last)
    assert.deepEqual(await held(rig), last === 'ready' ? ONE : NOTHING)
    assert.deepEqual([...host.running.entries()], last === 'ready' ? [[made.id, end.generation]] : [])
    const generations = await rig.rows<{ generation: number }>('SELECT generation::int FROM sandglass.events WHERE sandbox_id = $1 ORDER BY appended', [
      made.id,
    ])
    for (const [index, { generation }] of generations.entries()) assert.ok(generation >= (generations[index - 1]?.generation ?? 0), 'never decreases')
    const overlapping = await rig.rows(
      `SELECT a.generation FROM sandglass.assignments a JOIN sandglass.assignments b ON b.sandbox_id = a.sandbox_id AND b.generation > a.generation
        WHERE a.released_at IS NULL OR a.released_at > b.created_at`,
    )
    assert.deepEqual(overlapping, [], 'at most one assignment is live at any moment')
    assert.deepEqual(await rig.rows("SELECT id FROM sandglass.operations WHERE status = 'pending'"), [], 'nobody waits for ever')
  })
})
