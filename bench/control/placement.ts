/**
 * C5: placement over 1,000 hosts. The decision by itself (a pure function), and decisions that are committed under their guards by eight schedulers, beside
 * one. Nothing may be oversold.
 */
import { Worker } from 'node:worker_threads'
import { FleetRooms, type HostOffer, type PendingSandbox } from '@sandglass/control-plane'
import { insertFleet } from '@sandglass/testkit'
import pg from 'pg'
import { median } from '../measure/statistics.ts'
import { valueAtLeast, valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import type { ControlBench, ControlFamily } from './control-bench.ts'
import { TEMPLATE } from './control-plane-process.ts'

const HOSTS = 1_000
const SCHEDULERS = 8
const DECISIONS = 10_000
const PENDING = 4_000
const ROUNDS = 3
const TENANTS = 40
const MS_PER_SECOND = 1_000
const NEED = { vcpuMilli: 500, memoryMb: 512, diskGb: 2 }

const hosts: readonly HostOffer[] = Array.from({ length: HOSTS }, (_, index) => ({
  id: `ho${String(index).padStart(16, 'a')}`,
  name: `host-${index}`,
  region: 'l1',
  zone: `z${index % 3}`,
  hostClass: null,
  epoch: 1,
  drivers: ['fake'],
  templateDigests: [TEMPLATE.digest],
  capacity: { vcpuMilli: 64_000, memoryMb: 16_384 + (index % 7) * 8_192, diskGb: 1_000 },
  reserved: { vcpuMilli: 0, memoryMb: (index % 16) * 1_024, diskGb: 0 },
  cordoned: false,
  lost: false,
}))

const pendingOf = (index: number): PendingSandbox => ({
  id: `s${index}`,
  tenantId: `t${index % TENANTS}`,
  generation: 0,
  region: 'l1',
  driver: 'fake',
  templateDigest: TEMPLATE.digest,
  need: NEED,
  avoidHostId: null,
  unschedulableReason: null,
  poolKey: 'k',
  recovers: false,
  isAged: false,
})

/** @returns decisions per second, the making of the view included */
function decide(count: number): number {
  const pending = Array.from({ length: count }, (_, index) => pendingOf(index))
  const spread = new Map(Array.from({ length: TENANTS }, (_, index) => [`t${index}`, new Map<string, number>()]))
  const began = performance.now()
  const rooms = new FleetRooms({ hosts, pools: [], spread, pick: (among) => Math.floor(Math.random() * among) })
  for (const sandbox of pending) rooms.choose(sandbox)
  return (count * MS_PER_SECOND) / (performance.now() - began)
}

const PENDING_ROWS = `
  WITH made AS (
    INSERT INTO sandglass.sandboxes (id, tenant_id, region, desired, observed, template_name, template_digest, vcpu_milli, memory_mb, disk_gb, driver, network_mode, env, metadata,
      ttl_seconds, quota_held, operation_id, expires_at)
    SELECT 'sbl1p' || n, t.id, 'l1', 'running', 'pending', '${TEMPLATE.name}', '${TEMPLATE.digest}', 500, 512, 2, 'fake', 'none', '{}', '{}',
      3600, true, 'op' || n, clock_timestamp() + interval '1 h' FROM generate_series(1, $1::integer) n JOIN sandglass.tenants t ON t.name = 'rows-' || n % ${TENANTS}
    RETURNING tenant_id
  )
  UPDATE sandglass.quotas q SET running_sandboxes_used = running_sandboxes_used + m.n, vcpu_milli_used = vcpu_milli_used + m.n * 500,
    memory_mb_used = memory_mb_used + m.n * 512, disk_gb_used = disk_gb_used + m.n * 2
  FROM (SELECT tenant_id, count(*) AS n FROM made GROUP BY tenant_id) m WHERE m.tenant_id = q.tenant_id`

const OVERSOLD = `
  SELECT c.host_id FROM sandglass.host_capacity c WHERE c.memory_mb_reserved > c.memory_mb_capacity
    OR c.memory_mb_reserved <> (SELECT coalesce(sum(memory_mb), 0) FROM sandglass.assignments a WHERE a.host_id = c.host_id AND a.released_at IS NULL)`

/** @returns placements per second, and hosts that were oversold */
async function place(bench: ControlBench, schedulers: number): Promise<{ readonly perSecond: number; readonly oversold: number }> {
  const url = await bench.postgres.createDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await insertFleet(client, {
      hosts: HOSTS,
      live: 5_000,
      finished: 0,
      tenants: TENANTS,
      template: TEMPLATE,
      free: { vcpu: 32, memory_mb: 16_384, disk_gb: 400 },
    })
    await client.query("UPDATE sandglass.host_leases SET renewed_at = clock_timestamp() + interval '1 h'")
    const workers = Array.from({ length: schedulers }, () => new Worker(new URL('./scheduler-worker.ts', import.meta.url), { workerData: url }))
    const told = (): Promise<unknown[]> =>
      Promise.all(
        workers.map(
          (worker) =>
            new Promise((resolve, reject) => {
              worker.once('message', resolve)
              worker.once('error', reject)
            }),
        ),
      )
    await told()
    const count = bench.count(PENDING)
    await client.query(PENDING_ROWS, [count])
    await client.query('ANALYZE sandglass.sandboxes')
    const began = performance.now()
    const done = told()
    for (const worker of workers) worker.postMessage('go')
    const placed = (await done).reduce<number>((sum, one) => sum + Number(one), 0)
    const tookMs = performance.now() - began
    if (placed !== count) throw new Error(`${placed} of ${count} were placed`)
    return { perSecond: (placed * MS_PER_SECOND) / tookMs, oversold: (await client.query(OVERSOLD)).rows.length }
  } finally {
    await client.end()
  }
}

async function measure(bench: ControlBench): Promise<Finding[]> {
  decide(DECISIONS)
  let oversold = 0
  for (let round = 0; round < bench.count(ROUNDS); round += 1) {
    bench.signal.throwIfAborted()
    await bench.atRest()
    bench.samples.add('C5 decisions', 'ours', decide(DECISIONS), '/s')
    const many = await place(bench, SCHEDULERS)
    await bench.atRest()
    const one = await place(bench, 1)
    bench.samples.add('C5 committed', 'ours', many.perSecond, '/s')
    bench.samples.add('C5 committed', 'peer', one.perSecond, '/s')
    oversold += many.oversold + one.oversold
  }
  return [
    {
      id: 'C5',
      metric: `placement decisions over ${HOSTS.toLocaleString('en-US')} hosts, the plan alone`,
      unit: '/s',
      value: median(bench.samples.of('C5 decisions', 'ours')),
      peer: '',
      peerValue: null,
      must: valueAtLeast(2_000, '/s'),
      aim: valueAtLeast(20_000, '/s'),
    },
    {
      id: 'C5',
      metric: `placements committed by ${SCHEDULERS} schedulers`,
      unit: '/s',
      value: median(bench.samples.of('C5 committed', 'ours')),
      peer: 'one scheduler',
      peerValue: median(bench.samples.of('C5 committed', 'peer')),
      must: null,
      aim: null,
    },
    { id: 'C5', metric: 'hosts oversold', unit: '', value: oversold, peer: '', peerValue: null, must: valueAtMost(0, ''), aim: null },
  ]
}

export const placement: ControlFamily = { ids: ['C5'], measure }
