/**
 * Forward-only migrations: `migrations/NNNN-*.sql`, each in a transaction of its own, under an advisory lock so that replicas that start
 * together apply each once. A library for this would be a dependency for these lines.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { connectionOptions } from './database.ts'

/** Any constant that nobody else uses. */
const LOCK_KEY = 7_263_549
const folder = join(import.meta.dirname, 'migrations')

/** @returns numbers of the migrations that were applied now */
export async function migrate(url: string): Promise<number[]> {
  const client = new pg.Client({ ...connectionOptions(url, 'sandglass migrate'), lock_timeout: 60_000, statement_timeout: 120_000, query_timeout: 180_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK_KEY])
    await client.query('CREATE SCHEMA IF NOT EXISTS sandglass')
    await client.query('SET search_path = sandglass')
    await client.query(
      'CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())',
    )
    const done = await client.query<{ number: number }>('SELECT number FROM migrations')
    const applied: number[] = []
    for (const migration of pendingMigrations(new Set(done.rows.map((row) => row.number)))) {
      await client.query('BEGIN')
      await client.query(migration.text)
      await client.query('INSERT INTO migrations (number, name) VALUES ($1, $2)', [migration.number, migration.name])
      await client.query('COMMIT')
      applied.push(migration.number)
    }
    return applied
  } finally {
    await client.end()
  }
}

function pendingMigrations(done: ReadonlySet<number>): { number: number; name: string; text: string }[] {
  return globSync('*.sql', { cwd: folder })
    .sort()
    .map((name) => ({ number: Number.parseInt(name, 10), name, text: readFileSync(join(folder, name), 'utf8') }))
    .filter((migration) => !done.has(migration.number))
}
