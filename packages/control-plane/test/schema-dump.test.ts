/** The checked-in picture of the schema is what the migrations make. */
import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { dumpSchema, migrate } from '../src/index.ts'
import { usePostgres } from './harness.ts'

const postgres = usePostgres()
const file = join(import.meta.dirname, '../src/store/schema.generated.txt')

test('schema.generated.txt is fresh', async () => {
  const client = new pg.Client({ connectionString: await postgres.current.createDatabase() })
  await client.connect()
  const dump = await dumpSchema(client)
  await client.end()
  if (process.env['SANDGLASS_WRITE_GENERATED'] === '1') writeFileSync(file, dump)
  assert.equal(readFileSync(file, 'utf8'), dump)
})

test('migrations are applied once, also by replicas that start together', async () => {
  const url = await postgres.current.createDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('DROP SCHEMA sandglass CASCADE')
  await client.end()
  const applied = await Promise.all([migrate(url), migrate(url), migrate(url)])
  const numbers = globSync('*.sql', { cwd: join(import.meta.dirname, '../src/store/migrations') }).map((name) => Number.parseInt(name, 10))
  assert.deepEqual(
    applied.flat(),
    numbers.toSorted((a, b) => a - b),
  )
  assert.deepEqual(await migrate(url), [])
})
