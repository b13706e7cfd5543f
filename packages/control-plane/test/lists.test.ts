/** Pages, cursors and filters. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Sandbox } from '@sandglass/contract'
import { startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
type Page = { items: Sandbox[]; next_cursor: string | null }

test('a walk by cursor shows each once, newest first, while others come and go', async () => {
  await using rig = await startRig(postgres.current)
  const made: string[] = []
  for (let index = 0; index < 9; index += 1) made.push((await rig.create({}, { wait: 0 })).body.id)
  // Equal times: the id decides.
  await rig.rows("UPDATE sandglass.sandboxes SET created_at = timestamptz '2026-01-01' WHERE id = ANY ($1)", [made.slice(0, 4)])
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`
    const { body }: { body: Page } = await rig.call<Page>('GET', `/v1/sandboxes?limit=2${query}`)
    assert.ok(body.items.length <= 2)
    seen.push(...body.items.map((item) => item.id))
    cursor = body.next_cursor
    if (seen.length === 4) await rig.create({}, { wait: 0 })
    if (seen.length === 6) await rig.remove(seen[0] ?? '', 0)
  } while (cursor !== null)
  assert.deepEqual(seen.toSorted(), made.toSorted())
  assert.deepEqual(seen.slice(0, 5), made.slice(4).toReversed())
})

test('filters: status, template, name, metadata, and what has ended', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host()
  const ready = (await rig.create({ name: 'one', metadata: { team: 'x=y' } })).body.id
  const gone = (await rig.create({ metadata: { team: 'z' } })).body.id
  await rig.remove(gone)
  await rig.rows('UPDATE sandglass.host_capacity SET cordoned = true')
  const pending = (await rig.create({}, { wait: 0 })).body.id
  const ids = async (query: string) => (await rig.call<Page>('GET', `/v1/sandboxes${query}`)).body.items.map((item) => item.id)
  assert.deepEqual(await ids(''), [pending, ready])
  assert.deepEqual(await ids('?status=ready'), [ready])
  assert.deepEqual(await ids('?status=terminated'), [])
  assert.deepEqual(await ids('?status=terminated&include_ended=true'), [gone])
  assert.deepEqual(await ids('?name=one'), [ready])
  assert.deepEqual(await ids('?template=other'), [])
  assert.deepEqual(await ids('?metadata=team%3Dx%3Dy'), [ready])
  assert.deepEqual(await ids('?metadata=team%3Dz&include_ended=true'), [gone])
  assert.deepEqual([...new Set(host.starts.map((start) => start.ticket.sandbox))], [ready, gone])
})

test('a list of what lives reads only that, whatever the history, the filter and the plan', async () => {
  await using rig = await startRig(postgres.current)
  const { id } = (await rig.create({ name: 'one', metadata: { team: 'a' } }, { wait: 0 })).body
  // A history of 20,000 beside it.
  await rig.rows(
    `INSERT INTO sandglass.sandboxes (id, tenant_id, region, desired, observed, template_name, template_digest, vcpu_milli, memory_mb, disk_gb, driver,
       network_mode, env, metadata, ttl_seconds, quota_held, operation_id, expires_at, created_at)
     SELECT 'old' || n, tenant_id, region, 'deleted', 'terminated', template_name, template_digest, vcpu_milli, memory_mb, disk_gb, driver,
       network_mode, env, metadata, ttl_seconds, false, operation_id, expires_at, created_at - n * interval '1 second'
     FROM sandglass.sandboxes, generate_series(1, 20000) n WHERE id = $1`,
    [id],
  )
  await rig.rows('ANALYZE sandglass.sandboxes')
  const text = readFileSync(join(import.meta.dirname, '../src/store/sql/sandboxes/list-live.sql'), 'utf8')
  const client = await rig.sql.connect()
  try {
    await client.query('SET plan_cache_mode = force_generic_plan')
    await client.query(`PREPARE live AS ${text}`)
    const [tenant] = await rig.rows<{ tenant_id: string }>('SELECT tenant_id FROM sandglass.sandboxes WHERE id = $1', [id])
    const filters = ['NULL, NULL, NULL, \'{"team": "b"}\'', "'ready', NULL, NULL, NULL", "NULL, 'base', 'one', NULL"]
    for (const filter of filters) {
      const plan = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, TIMING OFF) EXECUTE live('${tenant?.tenant_id}', ${filter}, NULL, NULL, 51)`)
      const lines = plan.rows.map((row) => row['QUERY PLAN']).join('\n')
      assert.match(lines, /sandboxes_(?:live_by_tenant|name)/, lines)
      for (const [, rows] of lines.matchAll(/Rows Removed by Filter: (\d+)/g)) assert.ok(Number(rows) <= 1, lines)
    }
  } finally {
    client.release()
  }
  assert.equal((await rig.call<Page>('GET', '/v1/sandboxes?metadata=team%3Da&limit=200')).body.items.length, 1)
  assert.equal((await rig.call<Page>('GET', '/v1/sandboxes?metadata=team%3Da&limit=200&include_ended=true')).body.items.length, 200)
})

test('what is no cursor, no limit, no status or no filter is refused by name', async () => {
  await using rig = await startRig(postgres.current)
  for (const [query, path] of [
    ['cursor=nonsense', '/cursor'],
    ['limit=0', '/limit'],
    ['limit=201', '/limit'],
    ['limit=ten', '/limit'],
    ['limit=1&limit=2', '/limit'],
    ['status=lost', '/status'],
    ['include_ended=perhaps', '/include_ended'],
    ['metadata=team', '/metadata'],
  ] as const) {
    const answer = await rig.call('GET', `/v1/sandboxes?${query}`)
    assert.equal(answer.status, 400, query)
    assert.ok(
      answer.problem?.errors?.some((error) => error.path === path),
      query,
    )
  }
})

test('a tenant sees its own; keys, hosts and templates are paged too', async () => {
  await using rig = await startRig(postgres.current)
  for (const name of ['a', 'b', 'c']) await rig.host({ name })
  const acme = await rig.newKey('acme', 'owner')
  await rig.create({}, { wait: 0, key: acme })
  assert.deepEqual((await rig.call<Page>('GET', '/v1/sandboxes')).body.items, [])
  type Names = { items: { name: string }[]; next_cursor: string | null }
  const first = (await rig.call<Names>('GET', '/v1/hosts?limit=2', { key: rig.keys.operator })).body
  const second = (await rig.call<Names>('GET', `/v1/hosts?limit=2&cursor=${first.next_cursor}`, { key: rig.keys.operator })).body
  assert.deepEqual(
    [...first.items, ...second.items].map((host) => host.name),
    ['c', 'b', 'a'],
  )
  assert.deepEqual(
    (await rig.call<Names>('GET', '/v1/api-keys', { key: acme })).body.items.map((key) => key.name),
    ['test'],
  )
  assert.equal((await rig.call<Names>('GET', '/v1/api-keys', { key: rig.keys.owner })).body.items.length, 4)
  assert.deepEqual((await rig.call<Names>('GET', '/v1/templates')).body, {
    items: [{ name: 'base', digest: `sha256:${'a'.repeat(64)}`, size_bytes: 1_000, created_at: '2026-01-01T00:00:00.000Z' }],
    next_cursor: null,
  })
})
