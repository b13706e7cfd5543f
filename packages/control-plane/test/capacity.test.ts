/** What operators see of the fleet and of what waits for it, and tenants of their quota. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Capacity, Quota } from '@sandglass/contract'
import { until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

const capacity = async (rig: Rig): Promise<Capacity> => (await rig.call<Capacity>('GET', '/v1/capacity', { key: rig.keys.operator })).body

describe('GET /v1/capacity', () => {
  test('of an empty fleet is empty', async () => {
    await using rig = await startRig(postgres.current)
    const { classes, demand, waiting, oldest_waiting_seconds, start_lead } = await capacity(rig)
    assert.deepEqual(
      { classes, demand, waiting, oldest_waiting_seconds, start_lead },
      { classes: [], demand: [], waiting: 0, oldest_waiting_seconds: null, start_lead: { samples: 0, median_seconds: null } },
    )
    assert.equal((await rig.call('GET', '/v1/capacity', { key: rig.keys.owner })).problem?.code, 'forbidden')
  })

  test('tells by class what is offered, reserved and free, and the largest free room on one host', async () => {
    await using rig = await startRig(postgres.current)
    const big = await rig.host({ name: 'big', capacity: { vcpu: 4, memory_mb: 8_000, disk_gb: 100 } })
    await rig.create({ resources: { vcpu: 1, memory_mb: 1_000, disk_gb: 4 } })
    await rig.call('PATCH', `/v1/hosts/${big.id}`, { key: rig.keys.operator, body: { labels: { class: 'big' } } })
    for (const name of ['s1', 's2', 's3']) await rig.host({ name, capacity: { vcpu: 1, memory_mb: 2_000, disk_gb: 10 } })
    await rig.call('POST', '/v1/hosts/s1/cordon', { key: rig.keys.operator })
    await rig.rows(
      "UPDATE sandglass.host_leases l SET renewed_at = clock_timestamp() - interval '1 h' FROM sandglass.hosts h WHERE h.id = l.host_id AND h.name = 's2'",
    )
    const { classes, start_lead } = await capacity(rig)
    assert.deepEqual(classes, [
      {
        region: 'l1',
        class: null,
        hosts: { ready: 1, cordoned: 1, lost: 1 },
        offered: { vcpu: 4, memory_mb: 2_000, disk_gb: 10 },
        reserved: { vcpu: 0, memory_mb: 0, disk_gb: 0 },
        free: { vcpu: 4, memory_mb: 2_000, disk_gb: 10 },
        largest_free: { vcpu: 4, memory_mb: 2_000, disk_gb: 10 },
        pool: { target: 0, held: 0 },
      },
      {
        region: 'l1',
        class: 'big',
        hosts: { ready: 1, cordoned: 0, lost: 0 },
        offered: { vcpu: 16, memory_mb: 8_000, disk_gb: 100 },
        reserved: { vcpu: 1, memory_mb: 1_000, disk_gb: 4 },
        free: { vcpu: 15, memory_mb: 7_000, disk_gb: 96 },
        largest_free: { vcpu: 15, memory_mb: 7_000, disk_gb: 96 },
        pool: { target: 0, held: 0 },
      },
    ])
    assert.equal(start_lead.samples, 1)
    assert.ok(start_lead.median_seconds !== null && start_lead.median_seconds >= 0 && start_lead.median_seconds < 30)
  })

  test('tells what waits, how long, and why', async () => {
    await using rig = await startRig(postgres.current)
    await rig.host({ capacity: { vcpu: 1, memory_mb: 1_000, disk_gb: 100 } })
    assert.equal((await rig.create({ resources: { memory_mb: 1_000 } })).status, 201)
    for (const memory_mb of [600, 800, 700]) await rig.create({ resources: { memory_mb, vcpu: 1 } }, { wait: 0 })
    const told = await until('reasons of all', async () => {
      const now = await capacity(rig)
      const [reason] = now.demand[0]?.reasons ?? []
      return reason?.count === 3 && reason.code !== 'not_looked_at' ? now : undefined
    })
    assert.equal(told.waiting, 3)
    const [demand] = told.demand
    assert.deepEqual(demand && { ...demand, oldest_waiting_seconds: 0 }, {
      region: 'l1',
      isolation: 'fake',
      waiting: 3,
      asked: { vcpu: 3, memory_mb: 2_100, disk_gb: 6 },
      largest: { vcpu: 1, memory_mb: 800, disk_gb: 2 },
      oldest_waiting_seconds: 0,
      reasons: [{ code: 'no_capacity', count: 3 }],
    })
    assert.equal(demand?.oldest_waiting_seconds, told.oldest_waiting_seconds)
  })
})

test('GET /v1/quotas tells what the tenant may hold, holds, and weighs', async () => {
  await using rig = await startRig(postgres.current)
  await rig.rows('UPDATE sandglass.quotas SET running_sandboxes_limit = 7, fair_weight = 3')
  await rig.create({ resources: { vcpu: 0.25 } }, { wait: 0 })
  const { body } = await rig.call<Quota>('GET', '/v1/quotas', { key: rig.keys.viewer })
  assert.deepEqual([body.running_sandboxes, body.vcpu, body.memory_mb.used, body.weight], [{ limit: 7, used: 1 }, { limit: 4_000, used: 0.25 }, 512, 3])
  assert.deepEqual(body.rates.key, { requests: rig.config.rates.keyRequests, window_seconds: rig.config.rates.windowSeconds })
})

test('one that is placed again says whose proof it waits for, also when that host is not heard of', async () => {
  await using rig = await startRig(postgres.current, { timing: { startTimeoutMs: 1, sweepMs: 50 } })
  const host = await rig.host({ starts: ['hang'], provesEnds: false })
  const { id } = (await rig.create({}, { wait: 0 })).body
  const awaits = `awaiting_end: host ${host.id} has not proved the end of its earlier run`
  await until('a reason', async () => (await rig.get(id)).unschedulable_reason === awaits)
  assert.deepEqual((await capacity(rig)).demand[0]?.reasons, [{ code: 'awaiting_end', count: 1 }])
  await rig.rows("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() - interval '1 h'")
  await until('it to say that', async () => (await rig.get(id)).unschedulable_reason === `${awaits}, and has not been heard of for a lease`)
})
