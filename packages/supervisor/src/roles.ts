/** The roles of a single-machine installation, in the order in which they start: the database, the control plane, then the other two. */
import { join } from 'node:path'
import type { Owner } from './atomic-file.ts'
import type { CodeView } from './code-view.ts'
import { compileAhead } from './compiled-code.ts'
import { takeCrashPoint } from './crash-seam.ts'
import { type Installation, paths } from './installation.ts'
import { anyPort, LOOPBACK } from './port.ts'
import { type PostgresPlace, postgresLaunch } from './postgres.ts'
import { privilegedCommand } from './privileges.ts'
import { answersReady } from './readiness.ts'
import { type RoleName, roleEnvironment } from './role-environment.ts'
import type { Launch, RoleSpec } from './role-spec.ts'
import { SYSTEM_USERS, type SystemUser } from './system-user.ts'

export type RolesPlace = {
  readonly installation: Installation
  readonly view: CodeView
  readonly postgres: PostgresPlace
  readonly owners: { readonly root: Owner; readonly api: Owner; readonly gateway: Owner }
  /** Of the process that called `up`. */
  readonly outer: NodeJS.ProcessEnv
}

type NodeRole = Exclude<RoleName, 'postgres'>

function nodeRole(
  place: RolesPlace,
  role: NodeRole,
  user: SystemUser | undefined,
  owner: Owner,
  ready: () => Promise<{ env: Record<string, string>; url: string }>,
): RoleSpec {
  const { installation, view } = place
  return {
    name: role,
    stopSignal: 'SIGTERM',
    launch: async (signal): Promise<Launch> => {
      const main = join(view.root, 'packages', role, 'src', 'main.ts')
      const command = privilegedCommand([view.node, main], { user, deathSignal: 'KILL' })
      await compileAhead(paths.compileCache(installation.home, role), owner, command, signal)
      const { env, url } = await ready()
      return {
        ...command,
        env: { ...roleEnvironment(role, installation, place.outer), ...env, ...takeCrashPoint(installation.home, role) },
        url,
        isReady: () => answersReady(url),
      }
    },
  }
}

const at = (url: string) => () => Promise.resolve({ env: {}, url })

/** The host agent's: one of its own at each start, unless the operator has named one, for a scraper of metrics. */
const atHealthPort = (named: number) => async (): Promise<{ env: Record<string, string>; url: string }> => {
  const port = named === 0 ? await anyPort() : named
  return { env: { SANDGLASS_HOST_HEALTH_PORT: String(port) }, url: `http://${LOOPBACK}:${port}` }
}

export function installationRoles(place: RolesPlace): RoleSpec[][] {
  const { apiUrl, gatewayUrl, ports } = place.installation
  const postgres: RoleSpec = { name: 'postgres', stopSignal: 'SIGINT', launch: () => Promise.resolve(postgresLaunch(place.postgres)) }
  return [
    [postgres],
    [nodeRole(place, 'control-plane', SYSTEM_USERS.api, place.owners.api, at(apiUrl))],
    [
      nodeRole(place, 'gateway', SYSTEM_USERS.gateway, place.owners.gateway, at(gatewayUrl)),
      nodeRole(place, 'host-agent', undefined, place.owners.root, atHealthPort(ports.hostHealth)),
    ],
  ]
}
