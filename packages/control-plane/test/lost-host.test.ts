/** A host is lost: what becomes of everything that it held, through the real API, with leases of a second. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DEFAULT_RESOURCES, type Host, type Operation, type Sandbox } from '@sandglass/contract'
import { type SimulatedHost, until } from '@sandglass/testkit'
import { type Rig, type RigOptions, startRig, usePostgres } from './harness.ts'
import { told } from './host-operator.ts'

const postgres = usePostgres()

const LEASE_MS = 1_500
const GRACE_MS = 500
const FAST: RigOptions = {
  timing: { leaseMs: LEASE_MS, fenceGraceMs: GRACE_MS, renewPeriodMs: 300, fencePollMs: 50, fenceGapMs: 1_000, restartBaseMs: 60_000 },
}
const joinRenewing = (rig: Rig, name: string) => rig.host({ name, persistent: true, capacity: { vcpu: 8, memory_mb: 16_384, disk_gb: 100 } })

/** Neither renews nor reports nor hears any more; what it runs, runs on. */
async function cutOff(host: SimulatedHost): Promise<void> {
  host.renews = false
  host.provesEnds = false
  await host.leave()
}

const ready = (rig: Rig, id: string, generation: number): Promise<Sandbox> =>
  until(`${id} to be ready behind generation ${generation}`, async () => {
    const now = await rig.get(id)
    return now.status === 'ready' && now.generation > generation ? now : undefined
  })
const fenced = (rig: Rig, host: SimulatedHost) =>
  until('the fence', async () => (await rig.rows('SELECT FROM sandglass.host_leases WHERE host_id = $1 AND holder IS NULL', [host.id]))[0])
const heldBy = async (rig: Rig, host: SimulatedHost) =>
  (
    await rig.rows<{ vcpu: number; mb: number; gb: number; live: number }>(
      `SELECT vcpu_milli_reserved::int AS vcpu, memory_mb_reserved::int AS mb, disk_gb_reserved::int AS gb,
        (SELECT count(*)::int FROM sandglass.assignments a WHERE a.host_id = c.host_id AND a.released_at IS NULL) AS live
       FROM sandglass.host_capacity c WHERE host_id = $1`,
      [host.id],
    )
  )[0]
const quota = async (rig: Rig) => (await rig.rows('SELECT running_sandboxes_used AS running, memory_mb_used::int AS mb FROM sandglass.quotas'))[0]

describe('a lost host', () => {
  test('is fenced: by policy its sandboxes run elsewhere at once or have failed, deletes and stops are over, nothing is held', async () => {
    await using rig = await startRig(postgres.current, FAST)
    const lost = await joinRenewing(rig, 'lost')
    const create = async (body: object) => (await rig.create(body)).body
    const moves = await create({ restart_policy: 'on_host_loss' })
    const always = await create({ restart_policy: 'always' })
    const never = await create({})
    const deleted = await create({})
    const stopped = await create({})
    const restarted = await create({})
    lost.script('hang')
    const starting = (await rig.create({}, { wait: 0 })).body
    await until('its ticket', () => lost.starts.find(({ ticket }) => ticket.sandbox === starting.id))
    const other = await joinRenewing(rig, 'other')
    const cutAtMs = performance.now()
    await cutOff(lost)
    const removing = await rig.call<Operation>('DELETE', `/v1/sandboxes/${deleted.id}`)
    const stopping = await rig.run('stop', stopped.id, { wait: 0 })
    await rig.run('stop', restarted.id, { wait: 0 })
    const starting2 = await rig.run('start', restarted.id, { wait: 0 })
    assert.deepEqual([removing.status, stopping.status, starting2.status], [202, 202, 202])
    assert.deepEqual([(await rig.get(deleted.id)).status, (await rig.get(stopped.id)).status], ['terminating', 'stopping'])
    assert.equal((await heldBy(rig, lost))?.live, 7, 'nothing is released on a guess')

    const moved = await Promise.all([moves, always].map(({ id, generation }) => ready(rig, id, generation)))
    const tookMs = performance.now() - cutAtMs
    assert.ok(tookMs >= LEASE_MS + GRACE_MS - 300 && tookMs <= LEASE_MS + GRACE_MS + 10_000, `${tookMs} ms`)
    for (const [index, { host_id, restarts, generation }] of moved.entries()) {
      assert.deepEqual([host_id, restarts], [other.id, 1])
      assert.equal(generation, [moves, always][index]?.generation === undefined ? 0 : ([moves, always][index]?.generation ?? 0) + 2)
    }
    await ready(rig, starting.id, starting.generation)
    await ready(rig, restarted.id, restarted.generation)
    const failed = await until('it to have failed', async () => {
      const now = await rig.get(never.id)
      return now.status === 'failed' ? now : undefined
    })
    assert.deepEqual([failed.desired, failed.generation], ['stopped', never.generation + 1])
    assert.match(failed.status_reason ?? '', /^host_lost: its host was not heard of for too long/)
    await until('the delete to be over', async () => (await rig.operation(removing.body.id)).status === 'succeeded')
    await until('the stop to be over', async () => (await rig.operation(stopping.body.operation_id ?? '')).status === 'succeeded')
    assert.deepEqual([(await rig.get(deleted.id)).status, (await rig.get(stopped.id)).status], ['terminated', 'stopped'])
    await until('all to be released', async () => (await heldBy(rig, lost))?.live === 0)
    assert.deepEqual(await heldBy(rig, lost), { vcpu: 0, mb: 0, gb: 0, live: 0 })
    const { memory_mb } = DEFAULT_RESOURCES
    assert.deepEqual(await quota(rig), { running: 4, mb: 4 * memory_mb })
    assert.equal((await heldBy(rig, other))?.live, 4)
  })

  test('is paid until its fence, however late what it held is released; and no two intervals of a sandbox overlap', async () => {
    await using rig = await startRig(postgres.current, { ...FAST, timing: { ...FAST.timing, sweepMs: 60_000 } })
    const lost = await joinRenewing(rig, 'lost')
    const { id, generation } = (await rig.create({ restart_policy: 'on_host_loss' })).body
    await joinRenewing(rig, 'other')
    const holder = await rig.sql.connect()
    try {
      await holder.query('BEGIN')
      await holder.query('SELECT FROM sandglass.sandboxes WHERE id = $1 FOR UPDATE', [id])
      await cutOff(lost)
      await fenced(rig, lost)
      const [closed] = await rig.rows<{ at_fence: boolean }>(
        `SELECT closed_at BETWEEN fenced_at AND fenced_at + interval '1 s' AS at_fence FROM sandglass.usage_intervals, sandglass.host_leases
         WHERE sandbox_id = $1 AND host_id = $2`,
        [id, lost.id],
      )
      assert.equal(closed?.at_fence, true)
      assert.equal((await heldBy(rig, lost))?.live, 1, 'its release waits for the row')
      await holder.query('COMMIT')
    } finally {
      holder.release()
    }
    await ready(rig, id, generation)
    const intervals = await rig.rows<{ generation: number; open: boolean; apart: boolean | null }>(
      `SELECT generation::int, closed_at IS NULL AS open, opened_at >= lag(closed_at) OVER (ORDER BY generation) AS apart
       FROM sandglass.usage_intervals WHERE sandbox_id = $1 ORDER BY generation`,
      [id],
    )
    assert.deepEqual(intervals, [
      { generation, open: false, apart: null },
      { generation: generation + 2, open: true, apart: true },
    ])
  })

  test('that comes back is told its epoch, is heard in the new one only, and its late reports are refused and audited', async () => {
    await using rig = await startRig(postgres.current, FAST)
    const lost = await joinRenewing(rig, 'lost')
    const { id, generation } = (await rig.create({ restart_policy: 'on_host_loss' })).body
    const other = await joinRenewing(rig, 'other')
    await cutOff(lost)
    const moved = await ready(rig, id, generation)
    await assert.rejects(lost.renew(), { code: 'stale_epoch', context: { epoch: 2 } })
    for (let times = 0; times < 3; times += 1) await assert.rejects(lost.ready(id, generation), { code: 'stale_epoch', context: { epoch: 2 } })
    await assert.rejects(lost.ended(id, generation), { code: 'stale_epoch' })
    assert.deepEqual(await rig.rows("SELECT actor_id, subject FROM sandglass.audit_log WHERE action = 'report.late'"), [{ actor_id: lost.id, subject: id }])
    lost.renews = true
    await lost.reboot()
    assert.equal(lost.epoch, 3)
    // Its stable facts say nothing about what is live elsewhere.
    assert.deepEqual(await lost.ended(id, generation), { outcome: 'accepted', code: null })
    assert.deepEqual(await lost.ready(id, generation), { outcome: 'stale', code: 'stale_generation' })
    const now = await rig.get(id)
    assert.deepEqual([now.status, now.generation, now.host_id], ['ready', moved.generation, other.id])
    const again = await rig.create({})
    assert.equal(again.status, 201)
  })

  test('gives up its pools', async () => {
    const floors = [{ driver: 'fake', template: 'base', resources: DEFAULT_RESOURCES, count: 2 }]
    await using rig = await startRig(postgres.current, { ...FAST, config: { pools: { enabled: true, floors, ceiling: 0, memoryShare: 1 } } })
    const lost = await joinRenewing(rig, 'lost')
    await until('its pool', async () => (await told(rig, 'lost')).pool.held === 2)
    await cutOff(lost)
    await fenced(rig, lost)
    await until('it to be empty', async () => (await told(rig, 'lost')).pool.held === 0)
    assert.deepEqual(await rig.rows('SELECT target, held, epoch::int FROM sandglass.pools'), [{ target: 0, held: 0, epoch: 2 }])
    assert.equal((await heldBy(rig, lost))?.mb, 0)
  })

  test('under two control planes, one of which is killed behind the fence: released once, ready once', async () => {
    let reached = 0
    const faults = {
      reach(point: string) {
        if (point !== 'fence.committed') return
        reached += 1
        throw new Error('it dies')
      },
    }
    await using rig = await startRig(postgres.current, { ...FAST, faults })
    await using twin = await startRig(postgres.current, { ...FAST, twinOf: rig, faults })
    const lost = await joinRenewing(rig, 'lost')
    const { id, generation } = (await rig.create({ restart_policy: 'always' })).body
    const other = await joinRenewing(twin, 'other')
    await cutOff(lost)
    const moved = await ready(twin, id, generation)
    assert.deepEqual([reached, moved.restarts, other.running.get(id)], [1, 1, moved.generation])
    assert.equal((await rig.rows("SELECT FROM sandglass.audit_log WHERE action = 'host.fence'")).length, 1)
  })

  test('a drain of it is over by the fence', async () => {
    await using rig = await startRig(postgres.current, FAST)
    const lost = await joinRenewing(rig, 'lost')
    const { id } = (await rig.create({})).body
    await cutOff(lost)
    await rig.call<Host>('POST', '/v1/hosts/lost/drain', { key: rig.keys.operator, body: { deadline_seconds: 600 } })
    await until('the drain to be over', async () => (await told(rig, 'lost')).drain?.state === 'drained')
    const { status, lease } = await told(rig, 'lost')
    assert.deepEqual([status, lease.state, lease.lease_seconds, lease.fence_grace_seconds], ['lost', 'fenced', LEASE_MS / 1_000, GRACE_MS / 1_000])
    assert.ok(Math.abs(Date.now() - Date.parse(lease.fenced_at ?? '')) < 20_000)
    assert.match((await rig.get(id)).status_reason ?? '', /^host_lost: /)
    assert.equal((await rig.call('DELETE', '/v1/hosts/lost', { key: rig.keys.operator })).status, 204)
  })
})
