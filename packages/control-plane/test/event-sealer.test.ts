/** The order of the change feed, whatever commits when: nothing skipped, nothing doubled, and each guard has a scenario that fails without it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@sandglass/testkit'
import pg from 'pg'
import { EventReader } from './event-reader.ts'
import { type Rig, type RigOptions, startRig, usePostgres } from './harness.ts'
import { makeMutant } from './mutant.ts'

const postgres = usePostgres()
const HOLD_MS = 10_000

async function connected(rig: Rig): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: rig.databaseUrl })
  await client.connect()
  return client
}

const append = async (client: pg.Client, label: string, tenant = 'default'): Promise<unknown> =>
  await client.query(
    `INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation, reason)
     SELECT id, 'sandbox.ready', 'sbl1aaaaaaaaaaaaaaaa', 0, $1 FROM sandglass.tenants WHERE name = $2`,
    [label, tenant],
  )

const sealed = async (rig: Rig): Promise<string[]> =>
  (await rig.rows<{ reason: string }>('SELECT reason FROM sandglass.events WHERE position IS NOT NULL ORDER BY position')).map((row) => row.reason)
const seal = async (rig: Rig, holdMs = HOLD_MS) => await rig.modules.events.sealEvents(rig.db, 1_000, holdMs)

/** A control plane whose own sealer has had its first looks and sleeps: the test seals. */
async function quietRig(options: RigOptions = {}): Promise<Rig> {
  const rig = await startRig(postgres.current, { ...options, timing: { sweepMs: 3_600_000 } })
  type Statuses = { items: { name: string; runs: number; running: boolean }[] }
  await until('the first looks', async () => {
    const { items } = (await rig.call<Statuses>('GET', '/internal/v1/reconcilers', { key: rig.keys.operator })).body
    const sealer = items.find((item) => item.name === 'event-sealer')
    return sealer !== undefined && sealer.runs >= 2 && !sealer.running
  })
  return rig
}

function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

/** Transactions of one writer, some long, some rolled back. @returns the labels that were committed, in the writer's order */
async function write(rig: Rig, writer: number, rounds: number): Promise<string[]> {
  const random = randomOf(writer)
  const client = await connected(rig)
  const committed: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const labels = Array.from({ length: 1 + random(3) }, (_, index) => `${writer}.${round}.${index}`)
    await client.query('BEGIN')
    for (const label of labels) await append(client, label)
    // A long one stays open while others begin and commit.
    for (let wait = random(8); wait > 0; wait -= 1) await client.query('SELECT 1')
    if (random(4) === 0) await client.query(`SELECT pg_sleep(${random(40) / 1_000})`)
    const commits = random(6) > 0
    await client.query(commits ? 'COMMIT' : 'ROLLBACK')
    if (commits) committed.push(...labels)
  }
  await client.end()
  return committed
}

/** Reads to the end in short turns, each behind the position that the one before had reached. */
async function readInTurns(rig: Rig, isDone: () => boolean, total: () => number): Promise<string[]> {
  const seen: string[] = []
  for (let since = 0, turn = 1; !(isDone() && seen.length >= total()); turn += 1) {
    await using reader = await EventReader.open(rig, `?since=${since}`, { key: rig.keys.member })
    await until('some more', () => reader.changes.length >= 1 + (turn % 5) || (isDone() && seen.length + reader.changes.length >= total()))
    assert.deepEqual(reader.gaps, [])
    seen.push(...reader.changes.map((change) => change.reason ?? ''))
    since = reader.position
  }
  return seen
}

test('many writers with long transactions, two sealers, readers that come and go: each event once, in one order', async () => {
  await using rig = await startRig(postgres.current, { timing: { sweepMs: 20 } })
  await using twin = await startRig(postgres.current, { timing: { sweepMs: 20 }, twinOf: rig })
  await using here = await EventReader.open(rig, '?since=0')
  await using there = await EventReader.open(twin, '?since=0')
  let expected: string[] | undefined
  const turns = readInTurns(
    twin,
    () => expected !== undefined,
    () => expected?.length ?? 0,
  )
  const written = await Promise.all(Array.from({ length: 8 }, (_, writer) => write(rig, writer + 1, 15)))
  expected = written.flat()
  const total = expected.length
  await until('all of it', () => here.changes.length >= total && there.changes.length >= total)
  const seen = here.changes.map((change) => change.reason ?? '')
  assert.deepEqual(seen.toSorted(), expected.toSorted())
  assert.deepEqual(there.changes, here.changes)
  assert.deepEqual(await turns, seen)
  assert.deepEqual(
    here.changes.map((change) => change.position),
    Array.from({ length: total }, (_, index) => index + 1),
  )
  // What one writer did in turn, as changes of one sandbox are, stays in turn.
  for (const [writer, labels] of written.entries()) {
    assert.deepEqual(
      seen.filter((label) => label.startsWith(`${writer + 1}.`)),
      labels,
    )
  }
})

test('an event that was appended in time but committed late is not passed over, also behind a transaction that hangs', async () => {
  await using rig = await quietRig()
  const [hanging, quick] = [await connected(rig), await connected(rig)]
  await hanging.query('BEGIN')
  await append(hanging, 'late')
  await append(quick, 'quick')
  assert.deepEqual(await seal(rig, 0), { sealed: 1, held: 0 })
  await hanging.query('COMMIT')
  await append(quick, 'next')
  await seal(rig)
  assert.deepEqual(await sealed(rig), ['quick', 'late', 'next'])
  await Promise.all([hanging.end(), quick.end()])
})

test('rows of another cluster, whose transactions this one has never heard of, are sealed after the hold', async () => {
  await using rig = await quietRig()
  const client = await connected(rig)
  await append(client, 'restored')
  await client.query("UPDATE sandglass.events SET xid = '9000000000'::xid8")
  assert.deepEqual(await seal(rig), { sealed: 0, held: 1 })
  assert.deepEqual(await seal(rig, 0), { sealed: 1, held: 0 })
  await client.end()
})

test('a sealer that dies in its transaction has sealed nothing, and gives the turn back', async () => {
  await using rig = await quietRig()
  const client = await connected(rig)
  client.on('error', () => undefined)
  await append(client, 'a')
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  await client.query('BEGIN')
  await client.query('SELECT pg_advisory_xact_lock(7263550)')
  await client.query('UPDATE sandglass.events SET position = 1')
  const other = seal(rig)
  await rig.rows('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
  assert.deepEqual(await other, { sealed: 1, held: 0 })
  assert.deepEqual(await rig.rows('SELECT head::int FROM sandglass.event_feeds'), [{ head: 1 }])
})

test('the second net: no position twice, whatever statement comes', async () => {
  await using rig = await quietRig()
  const client = await connected(rig)
  await append(client, 'a')
  await append(client, 'b')
  await assert.rejects(client.query('UPDATE sandglass.events SET position = 1'), /events_by_position/)
  await client.end()
})

test('keys that are looked after all the time end no stream that just came', async () => {
  await using rig = await startRig(postgres.current, { timing: { sweepMs: 1 } })
  const keys = await Promise.all(Array.from({ length: 12 }, () => rig.newKey('default', 'viewer')))
  for (let round = 0; round < 5; round += 1) {
    await using readers = new AsyncDisposableStack()
    const opened = await Promise.all(keys.map(async (key) => readers.use(await EventReader.open(rig, '', { key }))))
    assert.deepEqual(
      opened.map((reader) => reader.problem?.code),
      keys.map(() => undefined),
    )
  }
})

type Guard = {
  readonly name: string
  readonly says: string
  readonly file: string
  readonly replace: string
  readonly by: string
  scenario(rig: Rig): Promise<void>
}

const GUARDS: readonly Guard[] = [
  {
    name: 'seal.horizon',
    says: 'an event waits for the transactions that are older than its own',
    file: 'store/sql/events/seal.sql',
    replace: 'xid < pg_snapshot_xmin(pg_current_snapshot()) OR at',
    by: 'true OR at',
    scenario: async (rig) => {
      const [long, quick] = [await connected(rig), await connected(rig)]
      try {
        await long.query('BEGIN')
        await append(long, 'first')
        await append(quick, 'second')
        assert.deepEqual(await seal(rig), { sealed: 0, held: 1 })
        await long.query('COMMIT')
        await seal(rig)
        assert.deepEqual(await sealed(rig), ['first', 'second'])
      } finally {
        await Promise.all([long.end(), quick.end()])
      }
    },
  },
  {
    name: 'seal.turn',
    says: 'one sealer at a time',
    file: 'store/sql/events/seal-turn.sql',
    replace: 'SELECT pg_advisory_xact_lock(7263550) AS turn',
    by: 'SELECT 1 AS turn',
    scenario: async (rig) => {
      const client = await connected(rig)
      for (let round = 0; round < 20; round += 1) {
        await client.query(`INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation)
          SELECT id, 'sandbox.ready', 'sbl1aaaaaaaaaaaaaaaa', 0 FROM sandglass.tenants, generate_series(1, 50) WHERE name = 'default'`)
        await Promise.all([1, 2, 3, 4].map(() => seal(rig)))
      }
      await client.end()
      assert.deepEqual(await rig.rows('SELECT head::int, (SELECT count(*)::int FROM sandglass.events) AS events FROM sandglass.event_feeds'), [
        { head: 1_000, events: 1_000 },
      ])
    },
  },
]

for (const { name, says, scenario, ...mutation } of GUARDS) {
  test(`${name}: ${says}`, async () => {
    await using rig = await quietRig()
    await scenario(rig)
  })

  test(`${name}: without it the scenario fails`, async () => {
    using mutant = makeMutant([mutation])
    await using rig = await quietRig({ source: mutant.source })
    await assert.rejects(scenario(rig))
  })
}
