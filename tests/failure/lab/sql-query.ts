/**
 * Prints the rows of one statement as JSON. Runs as a process of its own under the database's user, because Postgres believes the uid at the other end of
 * its socket and nothing else.
 */
import pg from 'pg'

const [, , socket = '', text = ''] = process.argv
const client = new pg.Client({ host: socket, user: 'postgres', database: 'sandglass', connectionTimeoutMillis: 5_000, statement_timeout: 10_000 })
await client.connect()
try {
  process.stdout.write(JSON.stringify((await client.query(text)).rows))
} finally {
  await client.end()
}
