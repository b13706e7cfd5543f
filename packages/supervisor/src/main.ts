/**
 * The supervisor's process. It is started by `up` in a session of its own, tells how it is doing in `run/installation.json`, and ends on
 * SIGTERM after stopping every role. When another supervisor serves the same home it leaves at once, without touching anything.
 */
import { join } from 'node:path'
import { COMPILE_ONLY } from '@sandglass/contract/compile-only'
import { CodedError } from '@sandglass/contract/errors'
import { closeCodeView } from './code-view.ts'
import { type Installation, installationOf, paths } from './installation.ts'
import { type InstallationState, writeState } from './installation-state.ts'
import { takeInstanceLock } from './instance-lock.ts'
import { LogFile } from './log-file.ts'
import { removePidFile, writePidFile } from './pid-file.ts'
import { anyPort, LOOPBACK, requirePort } from './port.ts'
import { prepare } from './prepare.ts'
import type { RoleReport } from './role-process.ts'
import { ROLE_TIMING } from './role-spec.ts'
import { installationRoles } from './roles.ts'
import { resolveSettings, writeSettings } from './settings.ts'
import { Supervision } from './supervision.ts'
import { SUPERVISOR, SUPERVISOR_EXIT } from './supervisor-process.ts'

function installationFrom(env: NodeJS.ProcessEnv): Installation {
  const home = env['SANDGLASS_HOME']
  const cache = env['SANDGLASS_CACHE']
  if (home === undefined || cache === undefined) throw new CodedError('invalid_request', 'SANDGLASS_HOME and SANDGLASS_CACHE must be set.')
  return installationOf({ home, cache, code: join(import.meta.dirname, '../../..'), ...resolveSettings(home, env, {}) })
}

const wireRole = (report: RoleReport): InstallationState['roles'][number] => ({
  name: report.name,
  state: report.state,
  pid: report.pid ?? null,
  url: report.url ?? null,
  restarts: report.restarts,
  since: report.since,
  last_exit: report.lastExit ?? null,
})

async function serve(installation: Installation): Promise<void> {
  const { home, ports, host } = installation
  const startedAt = new Date().toISOString()
  let state: InstallationState['state'] = 'starting'
  let failure: InstallationState['failure'] = null
  let roles: InstallationState['roles'] = []
  const tell = () =>
    writeState(home, {
      state,
      supervisor: { pid: process.pid, started_at: startedAt },
      installation: { id: installation.id, cache: installation.cache, code: installation.code, host, api_port: ports.api, gateway_port: ports.gateway },
      roles,
      failure,
    })
  const log = new LogFile(paths.log(home, SUPERVISOR))
  const event = (name: string, fields: Readonly<Record<string, unknown>> = {}) =>
    log.write(`${JSON.stringify({ time: new Date().toISOString(), event: name, ...fields })}\n`)

  let supervision: Supervision | undefined
  let ending: Promise<void> | undefined
  const end = (exitCode: number, reason: string): Promise<void> => {
    ending ??= (async () => {
      event('stopping', { reason })
      if (state !== 'failed') state = 'stopping'
      tell()
      await supervision?.stop()
      closeCodeView(paths.codeView(home))
      removePidFile(home, SUPERVISOR)
      event('stopped')
      process.exit(exitCode)
    })()
    return ending
  }
  process.on('SIGTERM', () => void end(0, 'SIGTERM'))
  process.on('SIGINT', () => void end(0, 'SIGINT'))
  process.on('SIGHUP', () => undefined)

  writePidFile(home, SUPERVISOR, process.pid)
  tell()
  event('starting', { installation: installation.id, pid: process.pid, api_port: ports.api, gateway_port: ports.gateway })
  try {
    const world = {
      home,
      timing: ROLE_TIMING,
      now: () => new Date(),
      event,
      changed: (reports: readonly RoleReport[]) => {
        roles = reports.map(wireRole)
        tell()
      },
    }
    // One for as long as the installation runs: hosts and gateways find the control plane there after its restart.
    const internal = ports.internal === 0 ? await anyPort() : ports.internal
    const place = await prepare(installationOf({ ...installation, ports: { ...ports, internal } }), process.env)
    supervision = new Supervision(installationRoles(place), world)
    await supervision.endOrphans()
    await requirePort(host, ports.api, 'API', (port) => `sandglass up --api-port ${port}`)
    await requirePort(host, ports.gateway, 'gateway', (port) => `sandglass up --gateway-port ${port}`)
    await requirePort(installation.internalHost, internal, 'hosts and gateways', (port) => `SANDGLASS_INTERNAL_PORT=${port} sandglass up`)
    if (ports.hostHealth !== 0) {
      await requirePort(LOOPBACK, ports.hostHealth, 'host agent', (port) => `SANDGLASS_HOST_HEALTH_PORT=${port} sandglass up`)
    }
    writeSettings(home, installation)
    await supervision.start()
    if (ending !== undefined) return
    state = 'ready'
    tell()
    event('ready')
  } catch (error) {
    // A start that was told to stop fails by that; it is no failure.
    if (ending !== undefined) return
    const message = error instanceof Error ? error.message : String(error)
    event('failed', { message, stack: error instanceof CodedError || !(error instanceof Error) ? undefined : error.stack })
    state = 'failed'
    failure = { code: error instanceof CodedError ? error.code : 'internal', message }
    await end(SUPERVISOR_EXIT.failed, message)
  }
}

if (process.argv.includes(COMPILE_ONLY)) process.exit(0)
const installation = installationFrom(process.env)
const lock = await takeInstanceLock(installation.id)
if (lock === undefined) process.exit(SUPERVISOR_EXIT.alreadyRunning)
await serve(installation)
