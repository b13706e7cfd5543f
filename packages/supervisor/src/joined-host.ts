/**
 * A host on a machine of its own: no database, control plane or gateway, only the host agent, for a control plane elsewhere. What it is started with is kept
 * in `host-agent.env` below its home, which is also what a systemd unit reads, for root alone: headers for a collector of traces may hold a key. The token is in
 * a file of its own until it is used.
 */
import { execFile, spawn } from 'node:child_process'
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { CodedError, isErrorCode } from '@sandglass/contract/errors'
import { closed, parserOf } from '@sandglass/contract/schema'
import Type from 'typebox'
import { writeFileAtomic } from './atomic-file.ts'
import { type Installation, installationOf, paths } from './installation.ts'
import { writePidFile } from './pid-file.ts'
import { LOOPBACK } from './port.ts'
import { roleEnvironment } from './role-environment.ts'
import { homeFrom } from './start.ts'

const run = promisify(execFile)
const JOIN_MS = 60_000
const REACH_MS = 5_000
const DEFAULT_CACHE = '/var/cache/sandglass'
const ROOT = { uid: 0, gid: 0 }
const ROLE = 'host-agent'
export const HOST_UNIT = 'sandglass-host.service'

export type JoinOptions = {
  readonly env: NodeJS.ProcessEnv
  /** Of the control plane's listener for machines. */
  readonly url: string
  /** Undefined: this machine has joined before. */
  readonly token: string | undefined
  /** Where gateways reach this machine; undefined: SANDGLASS_DATA_PLANE_HOST, or else the address from which it reaches the control plane. */
  readonly address: string | undefined
}

export type JoinedHost = {
  readonly hostId: string
  readonly home: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Record<string, string>
}

const answers = parserOf(Type.Union([closed({ host_id: Type.String() }), closed({ code: Type.String(), detail: Type.String() })]))

/** @throws CodedError what the control plane says of the token; `root_required`, `invalid_request` */
export async function joinHost(options: JoinOptions): Promise<JoinedHost> {
  if (process.getuid?.() !== 0) throw new CodedError('root_required', 'A host makes network namespaces and mounts. Type: sudo ./sandglass host join')
  const url = URL.parse(options.url)
  if (url?.protocol !== 'https:')
    throw new CodedError('invalid_request', `${options.url} is not the address of a control plane for machines: it begins with https://`)
  const home = homeFrom(options.env)
  if (existsSync(paths.settings(home))) {
    throw new CodedError('invalid_request', `${home} holds an installation of its own, with its own host. Choose another SANDGLASS_HOME for this one.`)
  }
  const address = addressOf(options) ?? (await addressTowards(url))
  const installation = hostOnly(home, resolve(options.env['SANDGLASS_CACHE'] || DEFAULT_CACHE), url.origin)
  for (const folder of [home, paths.run(home), paths.secrets(home), paths.hostState(home), paths.logs(home)]) {
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o700)
  }
  const outer = { ...options.env, SANDGLASS_DATA_PLANE_HOST: address }
  const env = { ...roleEnvironment(ROLE, installation, outer), SANDGLASS_CACHE: installation.cache }
  const main = join(installation.code, 'packages', ROLE, 'src/main.ts')
  const tokenFile = paths.secret(home, 'host.join')
  if (options.token !== undefined) writeFileAtomic(tokenFile, options.token, 0o600, ROOT)
  try {
    const { stdout } = await run(process.execPath, [main, '--join'], { env, timeout: JOIN_MS, cwd: '/' })
    const answer = answers.parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''))
    if ('code' in answer) throw new CodedError(isErrorCode(answer.code) ? answer.code : 'internal', answer.detail)
    writeFileAtomic(environmentFile(home), environmentText(env), 0o600, ROOT)
    return { hostId: answer.host_id, home, command: process.execPath, args: [main], env }
  } finally {
    rmSync(tokenFile, { force: true })
  }
}

/** As systemd and a shell read it: between double quotes four characters mean something else, and a line may end. */
export const environmentText = (env: Readonly<Record<string, string>>): string =>
  Object.entries(env)
    .map(([name, value]) => `${name}="${value.replaceAll(/["\\`$]/g, '\\$&')}"\n`)
    .join('')

const environmentFile = (home: string): string => join(home, 'host-agent.env')

function hostOnly(home: string, cache: string, controlUrl: string): Installation {
  const ports = { api: 0, gateway: 0, hostHealth: 0, internal: 0 }
  const installation = installationOf({ home, cache, code: join(import.meta.dirname, '../../..'), host: LOOPBACK, internalHost: LOOPBACK, ports })
  return { ...installation, internalUrl: controlUrl }
}

/** What is typed stands before what was set. */
export const addressOf = ({ address, env }: Pick<JoinOptions, 'address' | 'env'>): string | undefined =>
  address ?? (env['SANDGLASS_DATA_PLANE_HOST'] || undefined)

/** Of the interface that leads there. */
function addressTowards(url: URL): Promise<string> {
  const { promise, resolve: found, reject } = Promise.withResolvers<string>()
  const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 443), timeout: REACH_MS })
  socket.once('connect', () => {
    found(socket.localAddress ?? LOOPBACK)
    socket.destroy()
  })
  const fail = (cause?: Error): void => {
    reject(new CodedError('unavailable', `${url.origin} cannot be reached from here${cause === undefined ? '' : `: ${cause.message}`}.`, { cause }))
    socket.destroy()
  }
  socket.once('timeout', () => fail())
  socket.once('error', fail)
  return promise
}

/** In a session of its own, with its output in the home's log; `down` with the same home ends it. @returns its pid */
export function startDetached(host: JoinedHost): number | undefined {
  const log = openSync(paths.log(host.home, ROLE), 'a', 0o640)
  try {
    const child = spawn(host.command, host.args, { cwd: '/', detached: true, stdio: ['ignore', log, log], env: host.env })
    child.unref()
    if (child.pid !== undefined) writePidFile(host.home, ROLE, child.pid)
    return child.pid
  } finally {
    closeSync(log)
  }
}

/** Until it ends, or a signal ends it. @returns its exit code */
export async function runInFront(host: JoinedHost, onSignal: (listener: (signal: 'INT' | 'TERM' | 'HUP') => void) => () => void): Promise<number> {
  const child = spawn(host.command, host.args, { cwd: '/', stdio: 'inherit', env: host.env })
  const stopListening = onSignal((signal) => void child.kill(`SIG${signal === 'HUP' ? 'TERM' : signal}`))
  const { promise, resolve: ended } = Promise.withResolvers<number>()
  child.once('exit', (code) => ended(code ?? 1))
  child.once('error', () => ended(1))
  const code = await promise
  stopListening()
  return code
}

/** @returns the path of the unit that was written */
export function writeUnit(host: JoinedHost, folder: string): string {
  const template = readFileSync(join(import.meta.dirname, '../../../deploy/systemd', HOST_UNIT), 'utf8')
  const text = template.replaceAll('@ENVIRONMENT@', environmentFile(host.home)).replaceAll('@COMMAND@', [host.command, ...host.args].join(' '))
  const path = join(folder, HOST_UNIT)
  writeFileAtomic(path, text, 0o644, ROOT)
  return path
}
