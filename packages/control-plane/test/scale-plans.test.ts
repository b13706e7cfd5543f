/**
 * On a database with a history: whatever placement, reconcilers, metrics and figures ask, Postgres answers from an index of what is at hand, and reads no table
 * that grows with what there was. Plans are those for any values, as a prepared statement has them when it was run often.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { insertFleet } from '@sandglass/testkit'
import pg from 'pg'
import { TEMPLATE, usePostgres } from './harness.ts'

const postgres = usePostgres()

/** What grows for ever. */
const HISTORY = new Set(['sandboxes', 'assignments', 'operations', 'usage_intervals', 'audit_log', 'events', 'idempotency_keys'])

/** Each with values of which only the types matter. */
const ASKED: Readonly<Record<string, readonly string[]>> = {
  'sandboxes/queue': ['256', "'{}'", '1024'],
  'sandboxes/lock-pending': ["'{a,b}'", '30000'],
  'sandboxes/aged-pending': ['30000', '16'],
  'sandboxes/explain-kind': ["'k'", "'r'", "'{a}'"],
  'sandboxes/explain-awaited-ends': ['30000'],
  'sandboxes/explain-wait': ["'a'", '1', "'r'"],
  'sandboxes/list-live': ["'t'", 'NULL', 'NULL', 'NULL', 'NULL', 'NULL', 'NULL', '51'],
  'sandboxes/list-named': ["'t'", 'NULL', 'NULL', "'n'", 'NULL', 'NULL', 'NULL', '51'],
  'sandboxes/next-retry': [],
  'sandboxes/expired': ['100'],
  'sandboxes/next-expiry': ['true'],
  'sandboxes/idle': ['100'],
  'sandboxes/count-by-status': [],
  'assignments/spread': ["'{teaaaaaaaaaaaaaaa1}'"],
  'assignments/fenced': ['NULL', '100'],
  'assignments/overdue': ['30000', '100'],
  'assignments/lock-live': ["'a'"],
  'hosts/offers': ['30000'],
  'hosts/due-orders': ["'a'", 'NULL'],
  'hosts/draining': ['30000', '200'],
  'hosts/list': ['30000', 'NULL', 'NULL', 'NULL', '51', 'NULL', 'NULL'],
  'pools/demand': ['120', '10'],
  'pools/pressure': [],
  'capacity/classes': ['30000'],
  'capacity/demand': [],
  'capacity/start-lead': [],
  'database/figures': ['30000'],
}

type Plan = { readonly 'Node Type': string; readonly 'Relation Name'?: string; readonly Plans?: readonly Plan[] }

describe('with 20,000 finished and 3,000 live on 100 hosts', () => {
  let client: pg.Client
  before(async () => {
    client = new pg.Client({ connectionString: await postgres.current.createDatabase() })
    await client.connect()
    await insertFleet(client, {
      hosts: 100,
      live: 3_000,
      finished: 20_000,
      tenants: 20,
      template: TEMPLATE,
      free: { vcpu: 4, memory_mb: 4_096, disk_gb: 40 },
    })
    await client.query('SET plan_cache_mode = force_generic_plan')
  })
  after(() => client.end())

  for (const [name, values] of Object.entries(ASKED)) {
    test(`${name} reads no history`, async () => {
      const text = readFileSync(join(import.meta.dirname, `../src/store/sql/${name}.sql`), 'utf8')
      const prepared = name.replaceAll(/\W/g, '_')
      await client.query(`PREPARE ${prepared} AS ${text}`)
      const { rows } = await client.query<{ 'QUERY PLAN': readonly { readonly Plan: Plan }[] }>(
        `EXPLAIN (FORMAT JSON) EXECUTE ${prepared}${values.length === 0 ? '' : `(${values.join(', ')})`}`,
      )
      assert.deepEqual(
        rows.flatMap((row) => row['QUERY PLAN'].flatMap(({ Plan }) => scansOf(Plan))).filter(({ table }) => HISTORY.has(table)),
        [],
      )
    })
  }

  test('one of a name is found by the name', async () => {
    const { rows } = await client.query<{ 'QUERY PLAN': string }>("EXPLAIN EXECUTE sandboxes_list_named('t', NULL, NULL, 'n', NULL, NULL, NULL, 51)")
    assert.match(rows.map((row) => row['QUERY PLAN']).join('\n'), /Index Scan using sandboxes_name /)
  })

  test('the sums are exact, so that every constraint and release holds on it', async () => {
    const { rows } = await client.query(
      `SELECT c.host_id FROM sandglass.host_capacity c
       WHERE c.memory_mb_reserved <> (SELECT coalesce(sum(memory_mb), 0) FROM sandglass.assignments a WHERE a.host_id = c.host_id AND a.released_at IS NULL)
       UNION ALL SELECT q.tenant_id FROM sandglass.quotas q
       WHERE q.memory_mb_used <> (SELECT coalesce(sum(memory_mb), 0) FROM sandglass.sandboxes s WHERE s.tenant_id = q.tenant_id AND s.quota_held)`,
    )
    assert.deepEqual(rows, [])
  })
})

function scansOf(plan: Plan): { readonly table: string; readonly by: string }[] {
  const own = plan['Node Type'] === 'Seq Scan' ? [{ table: plan['Relation Name'] ?? '', by: plan['Node Type'] }] : []
  return [...own, ...(plan.Plans ?? []).flatMap(scansOf)]
}
