/** Warm pools over simulated hosts: units are claimed once, refilled, given up for what waits, and what is held and reserved is exact. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SimulatedHost } from '@sandglass/testkit'
import { until } from '@sandglass/testkit'
import { reconcileReleases } from '../src/reconcilers/release.ts'
import { fencePools, resizePool } from '../src/store/pools.ts'
import { type Rig, type RigOptions, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

const SMALL = { vcpu: 0.1, memory_mb: 128, disk_gb: 1 }
const DEFAULT_SIZE = { vcpu: 0.5, memory_mb: 512, disk_gb: 2 }
const BIG_HOST = { vcpu: 64, memory_mb: 200_000, disk_gb: 2_000 }

/** A control plane that keeps `count` members of a size on every host; `demand` also follows what is created. */
const pooled = (count: number, resources = DEFAULT_SIZE, { ceiling = 0, ...more }: { ceiling?: number } & RigOptions = {}): RigOptions => ({
  config: { pools: { enabled: true, floors: count === 0 ? [] : [{ driver: 'fake', template: 'base', resources, count }], ceiling, memoryShare: 1 } },
  ...more,
})

type PoolRow = { host_id: string; epoch: number; target: number; held: number; version: number; acked: number }
const poolRows = async (rig: Rig): Promise<PoolRow[]> =>
  await rig.rows('SELECT host_id, epoch::int, target, held, version::int, acked_version::int AS acked FROM sandglass.pools ORDER BY host_id, key')
const idle = async (rig: Rig, count: number): Promise<void> =>
  void (await until(`${count} members to be acknowledged`, async () => {
    const rows = await poolRows(rig)
    return rows.reduce((sum, row) => sum + row.target, 0) === count && rows.every((row) => row.held === row.target && row.acked === row.version)
  }))

/** What every host has reserved is what its live assignments and its pools hold. */
async function assertExact(rig: Rig): Promise<void> {
  const rows = await rig.rows<{ host_id: string; reserved: number[]; sum: number[] }>(
    `SELECT c.host_id, ARRAY[vcpu_milli_reserved, memory_mb_reserved, disk_gb_reserved]::int[] AS reserved,
       (SELECT ARRAY[coalesce(sum(a.vcpu_milli), 0), coalesce(sum(a.memory_mb), 0) + p.memory_mb, coalesce(sum(a.disk_gb), 0) + p.disk_gb]::int[]
        FROM sandglass.assignments a WHERE a.host_id = c.host_id AND a.released_at IS NULL) AS sum
     FROM sandglass.host_capacity c,
       LATERAL (SELECT coalesce(sum(held * memory_mb), 0) AS memory_mb, coalesce(sum(held * disk_gb), 0) AS disk_gb FROM sandglass.pools WHERE host_id = c.host_id) p`,
  )
  for (const row of rows) assert.deepEqual(row.reserved, row.sum, row.host_id)
}

/** Fifty at a time. */
async function many<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const index = next
      next += 1
      results[index] = await work(index)
    }
  }
  await Promise.all(Array.from({ length: 50 }, worker))
  return results
}

const given = (hosts: readonly SimulatedHost[]): string[] => hosts.flatMap((host) => host.pools.given)

describe('a pool', () => {
  test('is filled to its floor, claimed from, refilled, and shows which way a sandbox came up', async () => {
    await using rig = await startRig(postgres.current, pooled(2))
    const host = await rig.host()
    await idle(rig, 2)
    const first = await rig.create()
    assert.equal(first.body.start_path, 'claimed')
    await idle(rig, 2)
    assert.equal(host.pools.idle(), 2)
    const other = await rig.create({ resources: { memory_mb: 256 } })
    assert.equal(other.body.start_path, 'cold')
    assert.equal(host.starts.at(-1)?.ticket.pool, null)
    await assertExact(rig)
    await rig.remove(first.body.id)
    await rig.remove(other.body.id)
    await idle(rig, 2)
    await assertExact(rig)
    const [reserved] = await rig.rows('SELECT vcpu_milli_reserved::int AS vcpu, memory_mb_reserved::int AS memory FROM sandglass.host_capacity')
    assert.deepEqual(reserved, { vcpu: 0, memory: 1_024 })
  })

  test('shows in the host, in the metrics and in the reconcilers', async () => {
    await using rig = await startRig(postgres.current, pooled(2))
    const host = await rig.host()
    await idle(rig, 2)
    await rig.create()
    await idle(rig, 2)
    const { body } = await rig.call<{ pool: object }>('GET', `/v1/hosts/${host.id}`, { key: rig.keys.operator })
    assert.deepEqual(body.pool, { target: 2, held: 2, memory_mb: 1_024, disk_gb: 4 })
    const metrics = (await rig.call<string>('GET', '/metrics')).body
    assert.match(metrics, /^sandglass_pool_target_members 2$/m)
    assert.match(metrics, /^sandglass_pool_held_members 2$/m)
    assert.match(metrics, /^sandglass_sandbox_start_duration_seconds_count\{path="claimed"\} 1$/m)
    const { body: reconcilers } = await rig.call<{ items: { name: string }[] }>('GET', '/internal/v1/reconcilers', { key: rig.keys.operator })
    assert.ok(reconcilers.items.some((one) => one.name === 'pool-planner'))
  })

  test('is only a promise: without a member ready the claim starts cold, under the same assignment', async () => {
    await using rig = await startRig(postgres.current, pooled(2))
    const host = await rig.host()
    await idle(rig, 2)
    host.pools.boots = false
    host.pools.reset()
    const { body } = await rig.create()
    assert.equal(body.start_path, 'cold')
    assert.notEqual(host.starts[0]?.ticket.pool, null)
    await assertExact(rig)
  })

  test('follows demand, and decays when it goes', async () => {
    await using rig = await startRig(postgres.current, pooled(0, SMALL, { ceiling: 50 }))
    await rig.host({ capacity: BIG_HOST })
    for (let count = 0; count < 12; count += 1) await rig.create({ resources: SMALL })
    const [row] = await until('a pool', async () => {
      const rows = await poolRows(rig)
      return rows[0] !== undefined && rows[0].target > 0 ? rows : undefined
    })
    assert.ok(row !== undefined && row.target <= 5, JSON.stringify(row))
    await rig.rows("UPDATE sandglass.sandboxes SET created_at = created_at - interval '1 h'")
    await idle(rig, 0)
    await assertExact(rig)
  })

  test('is emptied on a cordoned host, and when pools are turned off', async () => {
    await using rig = await startRig(postgres.current, pooled(3))
    const host = await rig.host()
    await idle(rig, 3)
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
    await idle(rig, 0)
    assert.equal(host.pools.idle(), 0)
    await rig.rows('UPDATE sandglass.host_capacity SET cordoned = false')
    await idle(rig, 3)
    await rig.stop()
    await host.leave()
    await using off = await startRig(postgres.current, { twinOf: rig })
    await until('the pool to be given up', async () => (await poolRows(off)).every((row) => row.target === 0))
    const [row] = await poolRows(off)
    assert.equal(row?.held, 3, 'held until the host says so')
  })

  test('is empty after its host began anew, once, by however many ask', async () => {
    await using rig = await startRig(postgres.current, pooled(3))
    const host = await rig.host()
    await idle(rig, 3)
    await rig.stop()
    await rig.rows('UPDATE sandglass.host_leases SET epoch = epoch + 1')
    const context = { config: rig.config, db: rig.db.for('reconcilers') }
    await Promise.all([reconcileReleases(context), reconcileReleases(context), reconcileReleases(context)])
    const [row] = await poolRows(rig)
    assert.deepEqual({ epoch: row?.epoch, target: row?.target, held: row?.held }, { epoch: 2, target: 0, held: 0 })
    await assertExact(rig)
    await host.leave()
  })

  for (const [what, change, fence] of [
    ['a fence', 'target = 3, held = 3, version = version + 1', true],
    ['a change of its target', 'held = 2', false],
  ] as const) {
    test(`is counted as it is by ${what} that waits for a change under way`, async () => {
      await using rig = await startRig(postgres.current, pooled(2))
      const host = await rig.host()
      await idle(rig, 2)
      await rig.stop()
      // What a shrink took is still held.
      if (!fence) await rig.rows('UPDATE sandglass.pools SET held = 3')
      if (!fence) await rig.rows('UPDATE sandglass.host_capacity SET memory_mb_reserved = 1536, disk_gb_reserved = 6')
      const [{ key, version } = assert.fail('no pool')] = await rig.rows<{ key: string; version: number }>('SELECT key, version::int FROM sandglass.pools')
      const holder = await rig.sql.connect()
      try {
        await holder.query('BEGIN')
        await holder.query(`UPDATE sandglass.pools SET ${change}`)
        await holder.query(`UPDATE sandglass.host_capacity SET memory_mb_reserved = ${fence ? 1536 : 1024}, disk_gb_reserved = ${fence ? 6 : 4}`)
        await rig.rows('UPDATE sandglass.host_leases SET epoch = epoch + $1', [fence ? 1 : 0])
        const at = { hostId: host.id, key, epoch: 1, version }
        const waiting = rig.db.transaction<unknown>((tx) => (fence ? fencePools(tx, host.id) : resizePool(tx, at, 4)))
        const waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        await until('it to wait', async () => (await rig.rows(waits))[0])
        await holder.query('COMMIT')
        await waiting
      } finally {
        holder.release()
      }
      assert.deepEqual(
        (await poolRows(rig)).map(({ target, held }) => [target, held]),
        [fence ? [0, 0] : [4, 4]],
      )
      await assertExact(rig)
      await host.leave()
    })
  }

  test('begins anew with its host', async () => {
    await using rig = await startRig(postgres.current, pooled(2))
    const host = await rig.host()
    await idle(rig, 2)
    await rig.create()
    await host.reboot()
    await idle(rig, 2)
    assert.equal(host.pools.idle(), 2)
    await assertExact(rig)
  })
})

describe('what waits for room', () => {
  test('makes pools smaller, says so, and is placed when the host has acknowledged it', async () => {
    await using rig = await startRig(postgres.current, pooled(4))
    const host = await rig.host({ capacity: { vcpu: 4, memory_mb: 2_048, disk_gb: 100 } })
    await idle(rig, 4)
    host.acknowledges = false
    const { body } = await rig.create({ resources: { memory_mb: 1_000 } }, { wait: 0 })
    const reason = await until('a reason', async () => (await rig.get(body.id)).unschedulable_reason)
    assert.match(reason, /^pool_shrinking: needs 0\.5 vCPU, 1,000 MB of memory/)
    // The reason is told first.
    const [shrunk] = await until('a smaller pool', async () => {
      const rows = await poolRows(rig)
      return rows[0]?.target === 4 ? undefined : rows
    })
    assert.deepEqual({ target: shrunk?.target, held: shrunk?.held }, { target: 2, held: 4 })
    host.acknowledges = true
    await until('it to be placed', async () => (await rig.get(body.id)).status === 'ready')
    await assertExact(rig)
  })

  test('gets what comes free before a pool does', async () => {
    await using rig = await startRig(postgres.current, pooled(2))
    await rig.host({ capacity: { vcpu: 40, memory_mb: 2_048, disk_gb: 100 } })
    await idle(rig, 2)
    const ids = await Promise.all(Array.from({ length: 6 }, async () => (await rig.create({}, { wait: 0 })).body.id))
    const ready = async () => (await Promise.all(ids.map((id) => rig.get(id)))).filter((one) => one.status === 'ready')
    await until('four to be ready', async () => (await ready()).length === 4)
    for (const one of await ready()) await rig.remove(one.id)
    await until('the others to be ready', async () => (await ready()).length === 2)
    await idle(rig, 2)
    await assertExact(rig)
  })

  test('counts from when it is wanted: an old sandbox that was started again keeps pools from the room like a new one', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host({ capacity: { vcpu: 4, memory_mb: 600, disk_gb: 100 } })
    const { id } = (await rig.create()).body
    await rig.run('stop', id)
    await rig.create()
    await rig.rows("UPDATE sandglass.sandboxes SET created_at = created_at - interval '1 h' WHERE id = $1", [id])
    await rig.run('start', id, { wait: 0 })
    assert.match(await until('a reason', async () => (await rig.get(id)).unschedulable_reason), /^no_capacity: /)
    const waits = () => rig.modules.pools.isAnythingWaitingForRoom(rig.db.for('reconcilers'))
    assert.equal(await waits(), true)
    await rig.rows("UPDATE sandglass.sandboxes SET wanted_since = wanted_since - interval '1 h' WHERE id = $1", [id])
    assert.equal(await waits(), false, 'what has waited long no longer does')
  })

  test('of many tenants takes turns', async () => {
    await using rig = await startRig(postgres.current)
    const alice = await rig.newKey('alice')
    const bob = await rig.newKey('bob')
    const hers = await Promise.all(Array.from({ length: 30 }, async () => (await rig.create({}, { wait: 0, key: alice })).body.id))
    const his = (await rig.create({}, { wait: 0, key: bob })).body.id
    await rig.host({ capacity: { vcpu: 4, memory_mb: 1_024, disk_gb: 100 } })
    const ready = async (): Promise<string[]> =>
      (await rig.rows<{ id: string }>("SELECT id FROM sandglass.sandboxes WHERE observed = 'ready'")).map((row) => row.id)
    await until('two to be ready', async () => (await ready()).length === 2)
    assert.ok((await ready()).includes(his))
    assert.equal((await ready()).filter((id) => hers.includes(id)).length, 1)
  })
})

describe('two control planes over one database', () => {
  test('500 claims: no member twice, no unit twice, held and reserved exact', async () => {
    const options = pooled(60, SMALL, { timing: { sweepMs: 500, resendMs: 5_000 } })
    await using first = await startRig(postgres.current, options)
    await using second = await startRig(postgres.current, { ...options, twinOf: first })
    const hosts = [
      await first.host({ name: 'a', capacity: BIG_HOST, persistent: true }),
      await second.host({ name: 'b', capacity: BIG_HOST, persistent: true }),
    ]
    await idle(first, 120)
    const answers = await many(500, (index) => (index % 2 === 0 ? first : second).create({ resources: SMALL }, { wait: 60 }))
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [201])
    assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 500)
    const members = answers.flatMap((answer) => answer.body.isolation?.evidence['member'] ?? [])
    assert.equal(new Set(members).size, members.length)
    assert.equal(members.length, given(hosts).length)
    assert.equal(new Set(given(hosts)).size, members.length)
    assert.ok(members.length >= 120, `${members.length} claimed`)
    const [claims] = await first.rows<{ claims: number; versions: number }>(
      `SELECT count(*)::int AS claims, count(DISTINCT (host_id, pool_version))::int AS versions FROM sandglass.assignments WHERE pool_key IS NOT NULL`,
    )
    assert.equal(claims?.claims, claims?.versions, 'each claim made a version of its own')
    await idle(first, 120)
    await assertExact(first)
    await many(500, (index) => (index % 2 === 0 ? second : first).remove(answers[index]?.body.id ?? '', 60))
    await idle(first, 120)
    await assertExact(first)
    const [left] = await first.rows('SELECT sum(memory_mb_reserved)::int AS memory, sum(vcpu_milli_reserved)::int AS vcpu FROM sandglass.host_capacity')
    assert.deepEqual(left, { memory: 120 * 128, vcpu: 0 })
  })

  test('LI9: 200 claims on a pool of 50, one host cordoned', async () => {
    const options = pooled(50, SMALL, { timing: { sweepMs: 500, resendMs: 5_000 } })
    await using first = await startRig(postgres.current, options)
    await using second = await startRig(postgres.current, { ...options, twinOf: first })
    const taking = await first.host({ name: 'a', capacity: BIG_HOST, persistent: true })
    const draining = await second.host({ name: 'b', capacity: BIG_HOST, persistent: true })
    await idle(first, 100)
    await first.rows('UPDATE sandglass.host_capacity SET cordoned = true WHERE host_id = $1', [draining.id])
    const answers = await many(200, (index) => (index % 2 === 0 ? first : second).create({ resources: SMALL }, { wait: 60 }))
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [201])
    assert.deepEqual([...new Set(answers.map((answer) => answer.body.host_id))], [taking.id])
    assert.equal(draining.starts.length, 0)
    assert.equal(draining.pools.given.length, 0)
    assert.equal(new Set(taking.pools.given).size, taking.pools.given.length)
    assert.ok(taking.pools.given.length >= 50)
    await idle(first, 50)
    await assertExact(first)
  })
})

test('capacity for 20, 60 at once: 20 run, the others wait with a reason, then run as others end', async () => {
  await using rig = await startRig(postgres.current, pooled(5, SMALL))
  const host = await rig.host({ capacity: { vcpu: 64, memory_mb: 20 * 128, disk_gb: 1_000 } })
  await idle(rig, 5)
  const ids = await Promise.all(Array.from({ length: 60 }, async () => (await rig.create({ resources: SMALL }, { wait: 0 })).body.id))
  const by = async (status: string) =>
    await rig.rows<{ id: string; reason: string | null }>('SELECT id, unschedulable_reason AS reason FROM sandglass.sandboxes WHERE observed = $1', [status])
  let ended = 0
  while (ended < ids.length) {
    const expected = Math.min(20, ids.length - ended)
    const running = await until(`${expected} to run`, async () => {
      const ready = await by('ready')
      return ready.length === expected ? ready : undefined
    })
    await until('a reason for each that waits', async () => (await by('pending')).every((one) => /^(no_capacity|pool_shrinking): /.test(one.reason ?? '')))
    assert.equal(host.running.size, expected)
    await assertExact(rig)
    await Promise.all(running.map((one) => rig.remove(one.id)))
    ended += expected
  }
  await idle(rig, 5)
  await assertExact(rig)
})
