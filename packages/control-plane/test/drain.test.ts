/** Drains over simulated hosts: what ends, what moves, what is waited for, and that calling it off is heard in the middle of it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { reconcileDrains } from '../src/reconcilers/drain.ts'
import { drainingSandboxes } from '../src/store/host-changes.ts'
import { type Rig, type RigOptions, startRig, usePostgres } from './harness.ts'
import { actions, ask, told } from './host-operator.ts'

const postgres = usePostgres()

/** Drains look when they are woken or told to, not by themselves. */
const still = (options: RigOptions = {}): RigOptions => ({ ...options, timing: { sweepMs: 60_000, ...options.timing } })
const drainContext = (rig: Rig) => ({ config: rig.config, db: rig.db.for('reconcilers') })
/** The drain's time to end what still runs has come. */
const comesToEnd = (rig: Rig) =>
  rig.rows("UPDATE sandglass.host_capacity SET drain_deadline_at = clock_timestamp() + interval '20 s' WHERE drain_started_at IS NOT NULL")

describe('a drain', () => {
  test('lets what runs finish, ends it before the deadline with the reason, and is over when the host has proved it', async () => {
    await using rig = await startRig(postgres.current, still())
    const host = await rig.host({ name: 'one', provesEnds: false })
    const ids = [(await rig.create()).body.id, (await rig.create()).body.id, (await rig.create()).body.id]
    const { status, body } = await ask(rig, 'POST', '/one/drain', { deadline_seconds: 600 })
    assert.deepEqual([status, body.status, body.cordoned, body.drain?.state, body.drain?.left], [202, 'draining', true, 'draining', 3])
    assert.deepEqual(
      body.drain?.waits_for.map(({ reason, count }) => ({ reason, count })),
      [{ reason: 'may_finish', count: 3 }],
    )
    const { started_at, ends_at, deadline_at } = body.drain ?? assert.fail('no drain')
    const seconds = (from: string, to: string) => Math.round((Date.parse(to) - Date.parse(from)) / 1_000)
    assert.deepEqual([seconds(started_at, deadline_at), seconds(ends_at, deadline_at)], [600, LIMITS.drainEndSeconds])
    assert.equal((await reconcileDrains(drainContext(rig))).actions, 0, 'there is time')
    const nextInMs = (await reconcileDrains(drainContext(rig))).nextInMs ?? 0
    assert.ok(nextInMs > 560_000 && nextInMs <= 570_000, `${nextInMs} ms`)
    // One finishes by itself.
    host.provesEnds = true
    await rig.remove(ids[0] ?? '')
    host.provesEnds = false
    assert.equal((await told(rig, 'one')).drain?.left, 2)
    await comesToEnd(rig)
    assert.equal((await reconcileDrains(drainContext(rig))).actions, 2)
    for (const id of ids.slice(1)) {
      const { status: observed, desired, status_reason: reason, generation } = await rig.get(id)
      assert.deepEqual([observed, desired, reason, generation], ['failed', 'stopped', 'host_drained: an operator drained the host', 2])
    }
    const ending = (await told(rig, 'one')).drain
    assert.deepEqual(
      [ending?.state, ending?.left, ending?.waits_for.map(({ reason, count }) => ({ reason, count }))],
      ['draining', 2, [{ reason: 'ending', count: 2 }]],
    )
    const rows = await rig.rows<{ subject: string; actor_id: string }>("SELECT subject, actor_id FROM sandglass.audit_log WHERE action = 'sandbox.retire'")
    assert.deepEqual(rows.map((row) => row.subject).sort(), ids.slice(1).sort())
    await rig.rows("UPDATE sandglass.host_capacity SET drain_deadline_at = clock_timestamp() - interval '1 s'")
    assert.equal((await told(rig, 'one')).drain?.state, 'overdue')
    await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '31 s'")
    const lost = await told(rig, 'one')
    assert.deepEqual([lost.status, lost.drain?.waits_for[0]?.reason], ['lost', 'host_lost'])
    assert.match(lost.drain?.waits_for[0]?.detail ?? '', /released when it is fenced/)
    await host.renew()
    for (const id of ids.slice(1)) await host.ended(id, 2)
    const done = await told(rig, 'one')
    assert.deepEqual([done.status, done.drain?.state, done.drain?.left, done.drain?.waits_for, done.reserved.memory_mb], ['drained', 'drained', 0, [], 0])
    assert.deepEqual(await rig.rows('SELECT running_sandboxes_used AS used FROM sandglass.quotas'), [{ used: 0 }])
  })

  test('ends what runs at once when the deadline is near, and starts elsewhere what is not up yet', async () => {
    await using rig = await startRig(postgres.current)
    const leaving = await rig.host({ name: 'leaving' })
    const running = (await rig.create()).body.id
    leaving.script('hang')
    const starting = (await rig.create({}, { wait: 0 })).body.id
    await until('its ticket', () => leaving.starts[1])
    const other = await rig.host({ name: 'other' })
    await ask(rig, 'POST', '/leaving/drain', { deadline_seconds: LIMITS.drainSecondsMin })
    await until('the start to move', async () => {
      const { status, host_id: hostId } = await rig.get(starting)
      return status === 'ready' && hostId === other.id
    })
    const ended = await rig.get(running)
    assert.deepEqual([ended.status, ended.status_reason], ['failed', 'host_drained: an operator drained the host'])
    await until('the drain to be over', async () => (await told(rig, 'leaving')).status === 'drained')
    assert.equal(leaving.running.size, 0)
    assert.equal((await rig.call('GET', '/metrics', { key: '' })).body?.toString().includes('sandglass_hosts{state="draining"} 1\n'), true)
  })

  test('moves what runs at once when its restart policy says so, and that uses up no restart', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host({ name: 'leaving' })
    const moves = (await rig.create({ restart_policy: 'on_host_loss' })).body
    const finishes = (await rig.create()).body
    const other = await rig.host({ name: 'other' })
    await ask(rig, 'POST', '/leaving/drain', { deadline_seconds: 600 })
    const moved = await until('it to run elsewhere', async () => {
      const now = await rig.get(moves.id)
      return now.status === 'ready' && now.generation > moves.generation ? now : undefined
    })
    assert.equal(moved.restarts, 0)
    assert.deepEqual(
      other.starts.map((order) => order.ticket.sandbox),
      [moves.id],
    )
    const { status, generation } = await rig.get(finishes.id)
    assert.deepEqual([status, generation], ['ready', finishes.generation])
  })

  test('finds what moves at once first, however much may finish, and of that what is ended soonest', async () => {
    await using rig = await startRig(postgres.current, still())
    await rig.host({ name: 'later' })
    const finishesLater = (await rig.create()).body.id
    await ask(rig, 'POST', '/later/cordon')
    await rig.host({ name: 'soon' })
    const finishesSoon = (await rig.create()).body.id
    const moves = (await rig.create({ restart_policy: 'on_host_loss' })).body.id
    await rig.stop()
    await rig.rows(
      `UPDATE sandglass.host_capacity SET cordoned = true, drain_started_at = clock_timestamp(),
        drain_deadline_at = clock_timestamp() + CASE h.name WHEN 'soon' THEN interval '1 h' ELSE interval '2 h' END FROM sandglass.hosts h WHERE h.id = host_id`,
    )
    const found = async (limit: number) =>
      (await drainingSandboxes(rig.db.for('reconcilers'), LIMITS.drainEndSeconds * 1_000, limit)).map((row) => row.sandbox_id)
    assert.deepEqual(await found(3), [moves, finishesSoon, finishesLater])
    assert.deepEqual(await found(1), [moves])
  })

  test('moves a start whatever attempts it has had; alone, it waits for another host', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ name: 'one', starts: ['hang'] })
    const { id } = (await rig.create({}, { wait: 0 })).body
    await until('its ticket', () => host.starts[0])
    await rig.rows('UPDATE sandglass.sandboxes SET start_attempts = $1', [LIMITS.startAttempts])
    await ask(rig, 'POST', '/one/drain', {})
    // First it waits for the proof that nothing of it is left on the host that is drained.
    await until('a reason', async () => /1 host cordoned/.test((await rig.get(id)).unschedulable_reason ?? ''))
    assert.equal((await rig.get(id)).status, 'pending')
    await rig.host({ name: 'two' })
    await until('it to run', async () => (await rig.get(id)).status === 'ready')
  })

  test('takes no attempt from a start that it moves', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ name: 'one', starts: ['hang'] })
    const { id } = (await rig.create({}, { wait: 0 })).body
    await until('its ticket', () => host.starts[0])
    await ask(rig, 'POST', '/one/drain', {})
    const failures = Array.from({ length: LIMITS.startAttempts - 1 }, () => 'fail' as const)
    const other = await rig.host({ name: 'two', starts: [...failures, 'ready'] })
    const end = await until('it to run or to be given up', async () => {
      const { status } = await rig.get(id)
      return ['ready', 'failed'].includes(status) ? status : undefined
    })
    assert.deepEqual([end, other.starts.length], ['ready', LIMITS.startAttempts])
  })

  test('twice, from two control planes, is one drain; another one gives less time, never more', async () => {
    await using first = await startRig(postgres.current, still())
    await using second = await startRig(postgres.current, still({ twinOf: first }))
    await first.host({ name: 'one' })
    await first.create()
    const answers = await Promise.all([first, second, first, second].map((rig) => ask(rig, 'POST', '/one/drain', { deadline_seconds: 600 })))
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [202])
    const begun = (await told(first, 'one')).drain
    const longer = (await ask(second, 'POST', '/one/drain', { deadline_seconds: 1_200 })).body.drain
    assert.deepEqual(longer, begun)
    const shorter = (await ask(second, 'POST', '/one/drain', { deadline_seconds: 300 })).body.drain
    assert.equal(shorter?.started_at, begun?.started_at)
    assert.ok(Date.parse(shorter?.deadline_at ?? '') < Date.parse(begun?.deadline_at ?? '') - 290_000)
    for (const deadline_seconds of [LIMITS.drainSecondsMin - 1, LIMITS.drainSecondsMax + 1, 1.5]) {
      assert.equal((await ask(first, 'POST', '/one/drain', { deadline_seconds })).problem?.errors?.[0]?.path, '/deadline_seconds')
    }
    await comesToEnd(first)
    const contexts = [drainContext(first), drainContext(first), drainContext(second), drainContext(second)]
    const outcomes = await Promise.all(contexts.map(reconcileDrains))
    assert.equal(
      outcomes.reduce((sum, outcome) => sum + outcome.actions, 0),
      1,
    )
    assert.equal((await reconcileDrains(drainContext(first))).actions, 0, 'late, there is nothing left')
    assert.deepEqual(await first.rows("SELECT count(*)::int AS count FROM sandglass.audit_log WHERE action = 'sandbox.retire'"), [{ count: 1 }])
  })

  test('without a deadline has the default one, and its repetition leaves the deadline of the first alone', async () => {
    await using rig = await startRig(postgres.current, still())
    await rig.host({ name: 'one' })
    await rig.host({ name: 'two' })
    const drain = async (path: string, body: object) => (await ask(rig, 'POST', path, body)).body.drain ?? assert.fail('no drain')
    const byDefault = await drain('/one/drain', {})
    assert.equal(Math.round((Date.parse(byDefault.deadline_at) - Date.parse(byDefault.started_at)) / 1_000), LIMITS.drainSecondsDefault)
    const long = await drain('/two/drain', { deadline_seconds: 86_400 })
    assert.deepEqual(await drain('/two/drain', {}), long)
    const rows = await rig.rows<{ detail: object }>("SELECT detail FROM sandglass.audit_log WHERE action = 'host.drain' ORDER BY id")
    assert.deepEqual(
      rows.map((row) => row.detail),
      [{ deadline_seconds: LIMITS.drainSecondsDefault }, { deadline_seconds: 86_400 }],
    )
  })

  test('is called off by uncordon, in the middle of it too', async () => {
    await using rig = await startRig(postgres.current, still())
    await rig.host({ name: 'one' })
    const { id } = (await rig.create()).body
    await ask(rig, 'POST', '/one/drain', {})
    await comesToEnd(rig)
    const holder = await rig.sql.connect()
    try {
      await holder.query('BEGIN')
      await holder.query('SELECT FROM sandglass.sandboxes WHERE id = $1 FOR UPDATE', [id])
      // It has planned, and waits for the row.
      const late = reconcileDrains(drainContext(rig))
      await until(
        'it to wait',
        async () => (await rig.rows("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%sandglass.sandboxes%'"))[0],
      )
      const { body } = await ask(rig, 'POST', '/one/uncordon')
      assert.deepEqual([body.status, body.cordoned, body.drain], ['ready', false, null])
      await holder.query('COMMIT')
      assert.equal((await late).actions, 0)
    } finally {
      holder.release()
    }
    assert.equal((await rig.get(id)).status, 'ready')
    assert.equal((await rig.create()).status, 201)
    assert.deepEqual(await actions(rig), ['host.drain', 'host.uncordon'])
  })

  test('stands only on a cordoned host, whatever statement asks', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host({ name: 'one' })
    await ask(rig, 'POST', '/one/drain', {})
    await assert.rejects(rig.rows('UPDATE sandglass.host_capacity SET cordoned = false'), /host_capacity_drain_cordons/)
    await assert.rejects(rig.rows('UPDATE sandglass.host_capacity SET drain_deadline_at = NULL'), /host_capacity_drain_whole/)
  })
})
