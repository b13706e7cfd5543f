/**
 * Eight schedulers, each with connections of its own in a thread of its own, on one Postgres: 5,000 creates of many tenants over 100 hosts of uneven sizes.
 * Nothing is sold twice at any moment, all that fits is placed, and nobody is starved by the tenant that asked for half of it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from '@sandglass/testkit'
import { NO_RULES } from '../src/domain/placement/fleet-rooms.ts'
import { type Rig, startRig, usePostgres } from './harness.ts'
import type { SchedulerOrder, SchedulerTold } from './scheduler-worker.ts'
import { seededBytes } from './seeded-bytes.ts'
import { insertHosts } from './sql-fleet.ts'

const postgres = usePostgres()

const SCHEDULERS = 8
const HOSTS = 100
const SMALL_TENANTS = 50
const OF_EACH = 48
const OF_THE_LARGE = 2_600
const IN_FLIGHT = 32
const BOUND_MS = 150_000

const SIZES = [
  { vcpu: 0.5, memory_mb: 512, disk_gb: 2 },
  { vcpu: 1, memory_mb: 1_024, disk_gb: 4 },
  { vcpu: 2, memory_mb: 2_048, disk_gb: 4 },
  { vcpu: 0.25, memory_mb: 4_096, disk_gb: 2 },
]
/** Together more than the small ones ask for, and half of what all do. */
const MEMORY_MB = [6_144, 12_288, 24_576, 36_864, 73_728]

const random = seededBytes(5_000)
const oneOf = <T>(values: readonly T[]): T => values[(random(1)[0] ?? 0) % values.length] ?? assert.fail('there is none')

test('eight schedulers, 5,000 creates, 100 hosts of uneven sizes: nothing oversold, all placed that fit, nobody starved', async (t) => {
  await using rig = await startRig(postgres.current, {
    timing: { sweepMs: 3_600_000 },
    config: { rates: { keyRequests: 1e9, tenantRequests: 1e9, windowSeconds: 10 } },
  })
  await rig.rows('UPDATE sandglass.quotas SET running_sandboxes_limit = 10000')
  await createAll(rig)
  await rig.stop()
  // Asked for in this order within a second, however long it took here.
  await rig.rows(
    "UPDATE sandglass.sandboxes SET created_at = clock_timestamp() - interval '1 s' + turn * interval '1 ms' / 5 FROM (SELECT id, row_number() OVER (ORDER BY created_at) AS turn FROM sandglass.sandboxes) o WHERE o.id = sandboxes.id",
  )
  const memory = Array.from({ length: HOSTS }, () => oneOf(MEMORY_MB))
  await insertHosts(
    rig,
    memory.map((memory_mb) => ({ vcpu: memory_mb / oneOf([512, 768]), memory_mb, disk_gb: memory_mb / 128 })),
    (index) => ({ zone: `z${index % 3}` }),
  )

  const began = performance.now()
  const workers = startSchedulers(rig)
  const oversold: object[] = []
  let looks = 0
  await until(
    'nothing more to place',
    async () => {
      oversold.push(...(await rig.rows(OVERSOLD)))
      looks += 1
      return workers.failed() ?? (await isSettled(rig))
    },
    BOUND_MS,
  )
  const tookMs = performance.now() - began
  const told = await workers.stop()
  oversold.push(...(await rig.rows(OVERSOLD)))
  assert.equal(workers.failed(), undefined)
  assert.deepEqual(oversold, [], `oversold in one of ${looks} looks`)

  const placed = told.reduce((sum, one) => sum + one.placed, 0)
  t.diagnostic(`${placed} of ${OF_THE_LARGE + SMALL_TENANTS * OF_EACH} placed in ${(tookMs / 1_000).toFixed(1)} s, ${looks} looks; ${JSON.stringify(told)}`)
  const [live] = await rig.rows(
    'SELECT count(*)::int AS live, count(DISTINCT sandbox_id)::int AS sandboxes FROM sandglass.assignments WHERE released_at IS NULL',
  )
  assert.deepEqual(live, { live: placed, sandboxes: placed })
  assert.ok(told.filter((one) => one.placed > 0).length >= SCHEDULERS / 2, `the work was split: ${JSON.stringify(told)}`)
  assert.deepEqual(await rig.rows(FITS_SOMEWHERE), [], 'nothing that waits would fit')
  assert.deepEqual(await rig.rows("SELECT id FROM sandglass.sandboxes WHERE observed = 'pending' AND unschedulable_reason NOT LIKE 'no_capacity: needs %'"), [])

  const tenants = await rig.rows<{ name: string; waits: number; served: number }>(BY_TENANT)
  assert.deepEqual(
    tenants.filter(({ name, waits }) => name !== 'large' && waits > 0),
    [],
    'the small ones got all that they asked for',
  )
  // The large one asked first and for half of it; the first of each small tenant came after one turn of each, give or take what schedulers had taken at once.
  const latest = Math.max(...tenants.filter(({ name }) => name !== 'large').map(({ served }) => served))
  assert.ok(latest <= SMALL_TENANTS + SCHEDULERS * 64, `the first of the last tenant was placement ${latest}`)
  const large = tenants.find(({ name }) => name === 'large')
  assert.ok(large !== undefined && large.waits > 0 && large.waits < OF_THE_LARGE, 'and the large one what was left')
})

async function createAll(rig: Rig): Promise<void> {
  const large = await rig.newKey('large', 'member')
  await rig.rows(
    "UPDATE sandglass.quotas SET running_sandboxes_limit = 10000, memory_mb_limit = 1000000000 WHERE tenant_id = (SELECT id FROM sandglass.tenants WHERE name = 'large')",
  )
  const small = await Promise.all(Array.from({ length: SMALL_TENANTS }, (_, index) => rig.newKey(`small-${index}`, 'member')))
  const keys = [...Array.from({ length: OF_THE_LARGE }, () => large), ...small.flatMap((key) => Array.from({ length: OF_EACH }, () => key))]
  const wishes = keys.map((key) => ({ key, resources: oneOf(key === large ? SIZES : SIZES.slice(0, 2)) }))
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      for (let wish = wishes.shift(); wish !== undefined; wish = wishes.shift()) {
        const { status, problem } = await rig.create({ resources: wish.resources }, { wait: 0, key: wish.key })
        assert.equal(status, 202, problem?.detail)
      }
    }),
  )
}

function startSchedulers(rig: Rig) {
  let failure: unknown
  const workers = Array.from({ length: SCHEDULERS }, (_, index) => {
    const order: SchedulerOrder = { databaseUrl: rig.databaseUrl, config: { timing: rig.config.timing, placement: NO_RULES }, seed: index }
    const worker = new Worker(new URL('./scheduler-worker.ts', import.meta.url), { workerData: order })
    worker.on('error', (error) => {
      failure = error
    })
    return worker
  })
  return {
    failed: () => failure,
    stop: () =>
      Promise.all(
        workers.map(
          (worker) =>
            new Promise<SchedulerTold>((resolve, reject) => {
              worker.once('message', resolve)
              worker.once('error', reject)
              worker.once('exit', () => reject(new Error('a scheduler ended without a word')))
              worker.postMessage('stop')
            }),
        ),
      ),
  }
}

/** What is reserved is what live assignments hold, and no more than there is. One statement sees one moment. */
const OVERSOLD = `
  SELECT c.host_id, c.memory_mb_reserved::int, c.memory_mb_capacity::int, held.* FROM sandglass.host_capacity c CROSS JOIN LATERAL (
    SELECT coalesce(sum(vcpu_milli), 0) AS vcpu_milli, coalesce(sum(memory_mb), 0) AS memory_mb, coalesce(sum(disk_gb), 0) AS disk_gb
    FROM sandglass.assignments a WHERE a.host_id = c.host_id AND a.released_at IS NULL
  ) held
  WHERE c.vcpu_milli_reserved <> held.vcpu_milli OR c.memory_mb_reserved <> held.memory_mb OR c.disk_gb_reserved <> held.disk_gb
    OR held.vcpu_milli > c.vcpu_milli_capacity OR held.memory_mb > c.memory_mb_capacity OR held.disk_gb > c.disk_gb_capacity`

const FITS_SOMEWHERE = `
  SELECT s.id, c.host_id FROM sandglass.sandboxes s JOIN sandglass.host_capacity c
    ON c.vcpu_milli_reserved + s.vcpu_milli <= c.vcpu_milli_capacity AND c.memory_mb_reserved + s.memory_mb <= c.memory_mb_capacity
    AND c.disk_gb_reserved + s.disk_gb <= c.disk_gb_capacity
  WHERE s.observed = 'pending' LIMIT 3`

/** Every one that waits has been told why, and none of them would fit. */
async function isSettled(rig: Rig): Promise<boolean> {
  const [state] = await rig.rows<{ untold: number }>(
    "SELECT count(*)::int AS untold FROM sandglass.sandboxes WHERE observed = 'pending' AND unschedulable_reason IS NULL",
  )
  return state?.untold === 0 && (await rig.rows(FITS_SOMEWHERE)).length === 0
}

/** How many of a tenant wait, and as which placement of all its first one was served. */
const BY_TENANT = `
  WITH served AS (SELECT tenant_id, min(turn)::int AS served FROM (
    SELECT tenant_id, row_number() OVER (ORDER BY created_at, id) AS turn FROM sandglass.assignments) a GROUP BY tenant_id)
  SELECT t.name, count(*) FILTER (WHERE s.observed = 'pending')::int AS waits, served.served
  FROM sandglass.tenants t JOIN sandglass.sandboxes s ON s.tenant_id = t.id LEFT JOIN served ON served.tenant_id = t.id GROUP BY t.name, served.served`
