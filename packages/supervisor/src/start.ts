/** `up`: starts the supervisor in a session of its own and waits until every role is ready, or says why not. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CodedError, isErrorCode } from '@sandglass/contract/errors'
import { waitUntil } from './bounded-wait.ts'
import { compileAhead } from './compiled-code.ts'
import { installationOf, paths } from './installation.ts'
import { readState } from './installation-state.ts'
import { ALL_PASSED_ON } from './role-environment.ts'
import { resolveSettings, type Wishes } from './settings.ts'
import { type InstallationStatus, readStatus } from './status.ts'
import { SUPERVISOR, SUPERVISOR_EXIT } from './supervisor-process.ts'

const START_MS = 400_000
const POLL_MS = 25
const DEFAULT_HOME = '/var/lib/sandglass'
const DEFAULT_CACHE = '/var/cache/sandglass'

export type StartOptions = Wishes & {
  /** Of the calling process: SANDGLASS_HOME, SANDGLASS_CACHE and what roles are allowed to inherit. */
  readonly env: NodeJS.ProcessEnv
  /** Called with every change while it starts. */
  readonly onProgress?: (status: InstallationStatus) => void
}

export type Started = { readonly alreadyRunning: boolean; readonly status: InstallationStatus }

export const homeFrom = (env: NodeJS.ProcessEnv): string => resolve(env['SANDGLASS_HOME'] || DEFAULT_HOME)

async function spawnSupervisor(home: string, env: Readonly<Record<string, string>>): Promise<ChildProcess> {
  mkdirSync(paths.run(home), { recursive: true })
  mkdirSync(paths.logs(home), { recursive: true })
  const main = join(import.meta.dirname, 'main.ts')
  await compileAhead(paths.compileCache(home, SUPERVISOR), { uid: 0, gid: 0 }, { command: process.execPath, args: [main] })
  const log = openSync(paths.log(home, SUPERVISOR), 'a', 0o640)
  try {
    const child = spawn(process.execPath, [main], { cwd: '/', detached: true, stdio: ['ignore', log, log], env })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** What the supervisor needs, and nothing else of the caller's environment. */
function supervisorEnvironment(env: NodeJS.ProcessEnv, home: string, cache: string, settings: ReturnType<typeof resolveSettings>): Record<string, string> {
  const passed = ALL_PASSED_ON.flatMap((name) => {
    const value = env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LANG: 'C.UTF-8',
    ...Object.fromEntries(passed),
    NODE_COMPILE_CACHE: paths.compileCache(home, SUPERVISOR),
    SANDGLASS_HOME: home,
    SANDGLASS_CACHE: cache,
    SANDGLASS_API_HOST: settings.host,
    SANDGLASS_API_PORT: String(settings.ports.api),
    SANDGLASS_GATEWAY_PORT: String(settings.ports.gateway),
    SANDGLASS_HOST_HEALTH_PORT: String(settings.ports.hostHealth),
    SANDGLASS_INTERNAL_HOST: settings.internalHost,
    SANDGLASS_INTERNAL_PORT: String(settings.ports.internal),
  }
}

/** @throws CodedError `root_required`, `port_in_use`, `role_not_ready`, `invalid_request` */
export async function startInstallation(options: StartOptions): Promise<Started> {
  if (process.getuid?.() !== 0) throw new CodedError('root_required', 'An installation makes users, network namespaces and mounts. Type: sudo ./sandglass up')
  const home = homeFrom(options.env)
  const cache = resolve(options.env['SANDGLASS_CACHE'] || DEFAULT_CACHE)
  const settings = resolveSettings(home, options.env, options)
  installationOf({ home, cache, code: join(import.meta.dirname, '../../..'), ...settings })

  const before = readStatus(home)
  if (before.supervisor_pid !== null && before.state !== 'stopping') return waitReady(home, undefined, options, true)
  if (before.supervisor_pid !== null) await waitUntil(() => readStatus(home).supervisor_pid === null, { timeoutMs: START_MS, everyMs: POLL_MS })
  const child = await spawnSupervisor(home, supervisorEnvironment(options.env, home, cache, settings))
  return waitReady(home, child, options, false)
}

async function waitReady(home: string, child: ChildProcess | undefined, options: StartOptions, alreadyRunning: boolean): Promise<Started> {
  let last = ''
  let status = readStatus(home)
  let joined = alreadyRunning
  const settled = await waitUntil(
    () => {
      status = readStatus(home)
      // Another `up` was faster: its supervisor is the one to wait for.
      if (child?.exitCode === SUPERVISOR_EXIT.alreadyRunning) joined = true
      const told = JSON.stringify(status.roles)
      if (told !== last) options.onProgress?.(status)
      last = told
      const ours = joined || status.supervisor_pid === child?.pid
      const ended = joined ? alreadyRunning && status.supervisor_pid === null : child?.exitCode !== null || child.signalCode !== null
      return (ours && (status.state === 'ready' || status.state === 'degraded')) || ended
    },
    { timeoutMs: START_MS, everyMs: POLL_MS },
  )
  if (status.state === 'ready' || status.state === 'degraded') return { alreadyRunning: joined, status }
  // A state that another supervisor left says nothing about this start.
  const told = readState(home)
  status = readStatus(home)
  if (status.failure !== null && (child === undefined || told?.supervisor.pid === child.pid))
    throw new CodedError(isErrorCode(status.failure.code) ? status.failure.code : 'internal', status.failure.message)
  throw new CodedError(
    'role_not_ready',
    `The installation in ${home} ${settled ? 'ended before it was ready' : 'was not ready in time'}. Type: sandglass logs ${SUPERVISOR}`,
  )
}
