/**
 * The engine of the simulation and the real server give equal answers: the same seeded histories of the store's own statements are run on both, each in a
 * transaction that is committed or, where a statement fails, rolled back.
 */
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { migrate } from '@sandglass/control-plane/store/migrate'
import { startTestPostgres, type TestPostgres } from '@sandglass/testkit'
import pg from 'pg'
import { Random } from '../src/kernel/random.ts'
import { sourceOf } from '../src/loading/hooks.ts'
import { Engine } from '../src/store/engine.ts'

const STEPS = 400

type Said = { readonly rows: readonly Readonly<Record<string, unknown>>[]; readonly failed: string | undefined }
type Side = { run(text: string, values: readonly unknown[]): Promise<Said> }

let postgres: TestPostgres
let engine: Engine

before(async () => {
  postgres = await startTestPostgres(migrate)
  engine = await Engine.open()
})

after(async () => {
  await engine.close()
  await postgres.stop()
})

const TENANT = 'teaaaaaaaaaaaaaaaa'
const HOSTS = ['hoaaaaaaaaaaaaaaaa', 'hobbbbbbbbbbbbbbbb']
const SANDBOXES = ['a', 'b', 'c', 'd'].map((letter) => `sbl1${letter.repeat(16)}`)
const KEY = 'c'.repeat(64)
const STATES = ['pending', 'assigned', 'starting', 'ready', 'stopping', 'stopped', 'failed', 'terminating', 'terminated']
const WANTED: Readonly<Record<string, string>> = { stopping: 'stopped', stopped: 'stopped', failed: 'stopped', terminating: 'deleted', terminated: 'deleted' }

/** One statement of the store with values as its callers give them, from few things, so that they meet. */
function step(random: Random, count: number): [file: string, values: unknown[]] {
  const host = random.pick(HOSTS)
  const sandbox = random.pick(SANDBOXES)
  const epoch = random.integer(0, 3)
  const assignment = `as${'abcdefgh'.charAt(count % 8).repeat(14)}${random.pick(['aa', 'bb', 'cc'])}`
  const to = random.pick(STATES)
  const steps: (() => [string, unknown[]])[] = [
    () => ['hosts/insert-first', [host, `name-${host.charAt(2)}`, 'l1', '0.0.0']],
    () => ['hosts/register', [host, epoch, random.pick(['boot-one', 'boot-two'])]],
    () => ['hosts/renew', [host, epoch, random.pick(['boot-one', 'boot-two'])]],
    () => ['hosts/fence', [host, epoch, random.integer(0, 6)]],
    () => ['hosts/cordon', [host]],
    () => ['hosts/uncordon', [host]],
    () => ['hosts/reserve', [host, 500, 512, 1]],
    () => ['hosts/due-orders', [host, random.pick([null, [sandbox]])]],
    () => ['hosts/count-live', [host]],
    () => ['assignments/insert', [assignment, sandbox, host, epoch]],
    () => ['assignments/insert-claimed', [assignment, sandbox, host, epoch, KEY]],
    () => ['assignments/lock-live', [sandbox]],
    () => ['assignments/release', [assignment, random.pick(['ended', 'fence'])]],
    () => ['assignments/lease-of', [host]],
    () => ['sandboxes/lock', [sandbox]],
    () => ['sandboxes/drop-quota', [sandbox]],
    () => ['sandboxes/hold-quota', [sandbox]],
    () => ['sandboxes/set-operation', [sandbox, `op${'a'.repeat(16)}`]],
    () => [
      'sandboxes/move',
      [
        sandbox,
        random.integer(0, 3),
        STATES,
        to,
        WANTED[to] ?? 'running',
        random.integer(0, 1),
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
      ],
    ],
    () => ['quotas/take', [TENANT, 500, 512, 1, random.integer(0, 1)]],
    () => ['quotas/give-back', [TENANT, 500, 512, 1, random.integer(0, 1)]],
    () => ['quotas/read', [TENANT]],
    () => ['pools/ensure', [host, KEY, '{}', 512, 1]],
    () => ['pools/resize', [host, KEY, epoch, random.integer(0, 4), random.integer(0, 3)]],
    () => ['pools/acknowledge', [host, KEY, random.integer(0, 5)]],
    () => ['pools/fence', [host]],
    () => ['pools/due-orders', [host]],
    () => ['outbox/append', ['origin', ['host', 'placement'], [`${host} ${sandbox}`, '']]],
    () => ['events/append', [TENANT, 'sandbox.ready', sandbox, 1, random.pick([null, 'a reason, with "quotes" and \\'])]],
    () => ['events/seal', [1_000, 10_000]],
    () => ['operations/end', [`op${'a'.repeat(16)}`, random.pick([null, '{"code":"internal"}'])]],
    () => ['idempotency-keys/claim', [TENANT, 'POST /v1/sandboxes', 'd'.repeat(64), 'e'.repeat(64), sandbox, 86_400]],
    () => ['usage-intervals/open', [sandbox, random.integer(0, 3), TENANT, 500, 512, 1]],
  ]
  return random.pick(steps)()
}

/** What is there before: tenants, templates and sandboxes that nobody has placed. */
const FURNITURE = [
  `INSERT INTO sandglass.tenants (id, name) VALUES ('${TENANT}', 'default')`,
  `INSERT INTO sandglass.quotas (tenant_id, running_sandboxes_limit, vcpu_milli_limit, memory_mb_limit, disk_gb_limit, kept_sandboxes_limit)
   VALUES ('${TENANT}', 3, 100000, 100000, 1000, 10)`,
  ...SANDBOXES.map(
    (id) => `INSERT INTO sandglass.sandboxes (id, tenant_id, region, desired, observed, template_name, template_digest, vcpu_milli, memory_mb, disk_gb, driver,
     network_mode, env, metadata, ttl_seconds, quota_held, operation_id, expires_at)
     VALUES ('${id}', '${TENANT}', 'l1', 'running', 'pending', 'base', 'sha256:x', 500, 512, 1, 'fake', 'none', '{}', '{}', 60, true, 'op${'a'.repeat(16)}',
       clock_timestamp() + interval '1 d')`,
  ),
]

/** Of times and random ids only that they are there. */
const plain = (rows: Said['rows']) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, value instanceof Date ? 'a time' : value])))

function failureOf(error: unknown): string {
  if (!(error instanceof pg.DatabaseError)) return `no answer of Postgres: ${String(error)}`
  return `${error.code} ${error.constraint ?? ''} ${error.message}`
}

function ofEngine(): Side {
  return {
    async run(text, values) {
      const { rows, error } = engine.run({ text, values })
      return { rows: plain(rows), failed: error === undefined ? undefined : failureOf(error) }
    },
  }
}

function ofServer(client: pg.Client): Side {
  return {
    async run(text, values) {
      try {
        return { rows: plain((await client.query<Record<string, unknown>>(text, [...values])).rows), failed: undefined }
      } catch (error) {
        return { rows: [], failed: failureOf(error) }
      }
    },
  }
}

for (const seed of [1, 2, 3, 4, 5]) {
  test(`a history of ${STEPS} statements, seed ${seed}, is the same on both`, async () => {
    const client = new pg.Client({
      connectionString: await postgres.createDatabase(),
      types: {
        getTypeParser: (oid: number, format?: 'text' | 'binary') =>
          oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format === 'binary' ? 'binary' : 'text'),
      },
    })
    await client.connect()
    engine.empty()
    try {
      const sides = [ofServer(client), ofEngine()]
      const both = async (text: string, values: readonly unknown[] = []): Promise<Said> => {
        const [server, embedded] = [await sides[0]?.run(text, values), await sides[1]?.run(text, values)]
        assert.deepEqual(embedded, server, text)
        assert.ok(server !== undefined)
        return server
      }
      for (const text of FURNITURE) await both(text)
      const random = new Random(seed)
      let failures = 0
      for (let count = 0; count < STEPS; count += 1) {
        await both('BEGIN')
        let failed = false
        for (let left = random.integer(1, 4); left > 0 && !failed; left -= 1) {
          const [file, values] = step(random, count)
          failed = (await both(sourceOf(`control-plane/src/store/sql/${file}.sql`), values)).failed !== undefined
        }
        if (failed) failures += 1
        await both(failed || random.chance(0.1) ? 'ROLLBACK' : 'COMMIT')
      }
      // A history in which everything or nothing fails compares little.
      assert.ok(failures > STEPS / 20 && failures < STEPS * 0.9, `${failures} of ${STEPS} transactions failed`)
    } finally {
      await client.end()
    }
  })
}

test('every statement of the store can be prepared by the engine', () => {
  const files = globSync('control-plane/src/store/sql/**/*.sql', { cwd: join(import.meta.dirname, '../..') }).sort()
  assert.ok(files.length > 50)
  for (const file of files) {
    const { error } = engine.run({ text: `PREPARE trial AS ${sourceOf(file)}` })
    assert.equal(error, undefined, `${file}: ${error?.message}`)
    engine.run({ text: 'DEALLOCATE trial' })
  }
})
