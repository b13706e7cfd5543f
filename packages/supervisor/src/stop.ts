/** `down`: stops the supervisor, and with it every role; sandboxes live on unless they are to end. */
import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { CodedError } from '@sandglass/contract/errors'
import { waitUntil } from './bounded-wait.ts'
import { closeCodeView } from './code-view.ts'
import { endSandboxes } from './end-sandboxes.ts'
import { installationOf, paths } from './installation.ts'
import { readPidFile, removePidFile } from './pid-file.ts'
import { isAlive, type ProcessIdentity, signalProcess } from './process-identity.ts'
import { ROLES, roleEnvironment } from './role-environment.ts'
import { ROLE_TIMING } from './role-spec.ts'
import { resolveSettings } from './settings.ts'
import { homeFrom } from './start.ts'
import { readStatus } from './status.ts'
import { SUPERVISOR } from './supervisor-process.ts'

const run = promisify(execFile)
const POLL_MS = 20
/** Each role may take its patience, one after another. */
const STOP_MS = ROLE_TIMING.stopMs * (ROLES.length + 1)
const END_SANDBOXES_MS = 60_000
const DESTROY_MS = 120_000
const DEFAULT_CACHE = '/var/cache/sandglass'

export type StopOptions = { readonly env: NodeJS.ProcessEnv; readonly sandboxes: boolean }

export type Stopped = {
  readonly home: string
  readonly wasRunning: boolean
  /** Asked to end through the API; null when that was not wanted or not possible. */
  readonly endedSandboxes: number | null
}

/** @throws CodedError `root_required`, `unavailable` when something would not end */
export async function stopInstallation(options: StopOptions): Promise<Stopped> {
  if (process.getuid?.() !== 0)
    throw new CodedError('root_required', 'Stopping an installation takes the rights that starting it took. Type: sudo ./sandglass down')
  const home = homeFrom(options.env)
  const status = readStatus(home)
  const ended =
    options.sandboxes && status.supervisor_pid !== null && status.api_url !== null ? await endSandboxes(home, status.api_url, END_SANDBOXES_MS) : undefined
  const supervisor = readPidFile(home, SUPERVISOR)
  if (supervisor !== undefined) await endProcess(supervisor, 'SIGTERM', STOP_MS, SUPERVISOR)
  removePidFile(home, SUPERVISOR)
  for (const role of ROLES.toReversed()) {
    const orphan = readPidFile(home, role)
    if (orphan !== undefined) await endProcess(orphan, role === 'postgres' ? 'SIGINT' : 'SIGTERM', ROLE_TIMING.stopMs, role)
    removePidFile(home, role)
  }
  closeCodeView(paths.codeView(home))
  if (options.sandboxes) await destroyAll(home, options.env)
  return { home, wasRunning: supervisor !== undefined, endedSandboxes: ended ?? null }
}

async function endProcess(identity: ProcessIdentity, signal: NodeJS.Signals, patienceMs: number, name: string): Promise<void> {
  const gone = () => !isAlive(identity)
  signalProcess(identity, signal)
  if (await waitUntil(gone, { timeoutMs: patienceMs, everyMs: POLL_MS })) return
  signalProcess(identity, 'SIGKILL')
  if (!(await waitUntil(gone, { timeoutMs: ROLE_TIMING.stopMs, everyMs: POLL_MS }))) {
    throw new CodedError('unavailable', `Process ${identity.pid} (${name}) did not end. Type: sandglass logs ${name}`)
  }
}

/** The host agent's own way out: it works without an API, and also takes away mounts and directories that no sandbox owns. */
async function destroyAll(home: string, env: NodeJS.ProcessEnv): Promise<void> {
  const code = join(import.meta.dirname, '../../..')
  const installation = installationOf({ home, cache: resolve(env['SANDGLASS_CACHE'] || DEFAULT_CACHE), code, ...resolveSettings(home, env, {}) })
  const { NODE_COMPILE_CACHE: _unused, ...own } = roleEnvironment('host-agent', installation, env)
  try {
    await run(process.execPath, [join(code, 'packages/host-agent/src/main.ts'), '--destroy-all'], { env: own, timeout: DESTROY_MS, cwd: '/' })
  } catch (cause) {
    throw new CodedError('unavailable', `Sandboxes of ${paths.hostState(home)} could not all be removed. Type: sandglass down --sandboxes`, { cause })
  }
}
