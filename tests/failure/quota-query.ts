/**
 * Prints what tenants are charged with, as JSON. Runs as a process of its own under the database's user, because Postgres believes the uid at
 * the other end of its socket and nothing else.
 */
import pg from 'pg'

const client = new pg.Client({ connectionString: process.argv[2], connectionTimeoutMillis: 5_000, statement_timeout: 5_000 })
await client.connect()
try {
  const { rows } = await client.query(
    `SELECT coalesce(sum(running_sandboxes_used), 0)::int AS sandboxes, coalesce(sum(vcpu_milli_used), 0)::float8 / 1000 AS vcpu,
            coalesce(sum(memory_mb_used), 0)::int AS memory_mb, coalesce(sum(disk_gb_used), 0)::int AS disk_gb
       FROM sandglass.quotas`,
  )
  process.stdout.write(JSON.stringify(rows[0]))
} finally {
  await client.end()
}
