/** C6: a page of what lives among 10,000 sandboxes of one tenant, by filters that hit much, little and one, with a history beside it. */
import { join } from 'node:path'
import { Sandbox } from '@sandglass/sdk'
import { insertFleet } from '@sandglass/testkit'
import pg from 'pg'
import { median, p99 } from '../measure/statistics.ts'
import { valueAtMost } from '../report/bound.ts'
import type { Finding } from '../report/finding.ts'
import type { ControlBench, ControlFamily } from './control-bench.ts'
import { ControlPlaneProcess, TEMPLATE } from './control-plane-process.ts'

const LIVE = 10_000
const FINISHED = 50_000
const ASKED = 200
const PAGE = 50

type Filter = Omit<NonNullable<Parameters<typeof Sandbox.list>[0]>, 'client' | 'pageSize'>

const FILTERS: readonly Filter[] = [
  { status: 'ready' },
  { metadata: { key: 'team', value: 't7' } },
  { name: 'sandbox-77' },
  { template: 'base', metadata: { key: 'team', value: 't49' } },
]

async function measure(bench: ControlBench): Promise<Finding[]> {
  const url = await bench.postgres.createDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await using controlPlane = await ControlPlaneProcess.start(url, join(bench.scratch, 'c6'))
    await insertFleet(client, { hosts: 100, live: LIVE, finished: FINISHED, tenants: 1, template: TEMPLATE, free: { vcpu: 0, memory_mb: 0, disk_gb: 0 } })
    await client.query(
      `UPDATE sandglass.sandboxes s SET name = 'sandbox-' || n
       FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM sandglass.sandboxes WHERE desired <> 'deleted') named WHERE named.id = s.id`,
    )
    await client.query('VACUUM ANALYZE sandglass.sandboxes')
    // The key's tenant is the one that has them.
    await client.query("UPDATE sandglass.api_keys SET tenant_id = (SELECT id FROM sandglass.tenants WHERE name = 'rows-0')")
    for (const keep of [false, true]) {
      for (let index = 0; index < bench.count(ASKED); index += 1) {
        for (const filter of FILTERS) {
          bench.signal.throwIfAborted()
          const began = performance.now()
          let seen = 0
          for await (const sandbox of Sandbox.list({ ...filter, client: controlPlane.client, pageSize: PAGE })) {
            seen += sandbox.id === '' ? 0 : 1
            if (seen === PAGE) break
          }
          if (seen === 0) throw new Error(`nothing was found by ${JSON.stringify(filter)}`)
          if (keep) bench.samples.add('C6 list', 'ours', performance.now() - began, 'ms')
        }
      }
    }
  } finally {
    await client.end()
  }
  const samples = bench.samples.of('C6 list', 'ours')
  bench.note('C6', `p50 ${median(samples).toFixed(1)} ms, by status, metadata, name, and template with metadata`)
  return [
    {
      id: 'C6',
      metric: `a page of ${PAGE} of ${LIVE.toLocaleString('en-US')} sandboxes by filter, p99`,
      unit: 'ms',
      value: p99(samples),
      peer: '',
      peerValue: null,
      must: valueAtMost(30, 'ms'),
      aim: valueAtMost(10, 'ms'),
    },
  ]
}

export const lists: ControlFamily = { ids: ['C6'], measure }
