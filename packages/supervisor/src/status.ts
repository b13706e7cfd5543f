/** What an installation is doing, from its state file and from which processes live. */
import { existsSync } from 'node:fs'
import { idOfHome, paths, urlOf } from './installation.ts'
import { type InstallationState, readState } from './installation-state.ts'
import { readPidFile } from './pid-file.ts'
import { ROLES } from './role-environment.ts'
import { SUPERVISOR } from './supervisor-process.ts'

export type RoleStatus = {
  readonly name: string
  readonly state: InstallationState['roles'][number]['state']
  readonly pid: number | null
  /** Where its process answers /healthz, /readyz and /metrics; null for Postgres, and while it does not run. */
  readonly url: string | null
  readonly restarts: number
  readonly since: string
  readonly last_exit: string | null
}

export type InstallationStatus = {
  readonly home: string
  readonly id: string
  /** degraded: it was ready, and a role is not at the moment. */
  readonly state: 'stopped' | 'starting' | 'ready' | 'degraded' | 'stopping' | 'failed'
  readonly supervisor_pid: number | null
  readonly api_url: string | null
  readonly gateway_url: string | null
  readonly admin_key_file: string | null
  readonly roles: readonly RoleStatus[]
  /** Why the last start failed. */
  readonly failure: { readonly code: string; readonly message: string } | null
}

export const LOG_NAMES: readonly string[] = [...ROLES, SUPERVISOR]

function overall(state: InstallationState, supervised: boolean): InstallationStatus['state'] {
  if (!supervised) return state.state === 'failed' ? 'failed' : 'stopped'
  if (state.state === 'ready' && state.roles.some((role) => role.state !== 'ready')) return 'degraded'
  return state.state
}

export function readStatus(home: string): InstallationStatus {
  const supervisor = readPidFile(home, SUPERVISOR)
  const state = readState(home)
  const adminKey = paths.adminKey(home)
  const known = { home, id: idOfHome(home), supervisor_pid: supervisor?.pid ?? null, admin_key_file: existsSync(adminKey) ? adminKey : null }
  if (state === undefined) {
    return { ...known, state: supervisor === undefined ? 'stopped' : 'starting', api_url: null, gateway_url: null, roles: [], failure: null }
  }
  const { host, api_port, gateway_port } = state.installation
  const supervised = supervisor?.pid === state.supervisor.pid
  return {
    ...known,
    state: overall(state, supervised),
    api_url: urlOf(host, api_port),
    gateway_url: urlOf(host, gateway_port),
    roles: state.roles.map(({ url = null, ...role }) => (supervised ? { ...role, url } : { ...role, state: 'stopped', pid: null, url: null })),
    failure: state.failure,
  }
}
