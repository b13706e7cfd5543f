/**
 * An installation: one home directory, its ports, a short id of its own. Everything that it keeps lies below the home; everything that it
 * makes on the machine carries the id, so that two installations live side by side.
 */
import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { CodedError } from '@sandglass/contract/errors'

/** A unix socket's path has 107 bytes; the longest below the home is `/run/postgres/.s.PGSQL.5432`. */
const HOME_BYTES_MAX = 80

export type Ports = {
  readonly api: number
  readonly gateway: number
  /** Health and metrics of the host agent, on loopback; 0: a free one at each start. */
  readonly hostHealth: number
  /** Where hosts and gateways come, by TLS; 0: a free one at each start of the installation. */
  readonly internal: number
}

export type Installation = {
  readonly id: string
  readonly home: string
  readonly cache: string
  /** The repository that holds the roles' code. */
  readonly code: string
  readonly host: string
  readonly ports: Ports
  readonly apiUrl: string
  readonly gatewayUrl: string
  /** The address that the control plane's listener for hosts and gateways has. */
  readonly internalHost: string
  readonly internalUrl: string
}

export type InstallationOptions = {
  readonly home: string
  readonly cache: string
  readonly code: string
  /** The address that API and gateway listen on. */
  readonly host: string
  /** The address for hosts and gateways. */
  readonly internalHost: string
  readonly ports: Ports
}

export const idOfHome = (home: string): string => createHash('sha256').update(resolve(home)).digest('hex').slice(0, 8)

/** How this machine reaches what listens on that address: one that means every address is reached through loopback. */
export function urlOf(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${port}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** @throws CodedError `invalid_request` for a home that cannot hold the sockets */
export function installationOf(options: InstallationOptions): Installation {
  const home = resolve(options.home)
  if (Buffer.byteLength(home) > HOME_BYTES_MAX) {
    throw new CodedError(
      'invalid_request',
      `SANDGLASS_HOME has ${Buffer.byteLength(home)} bytes; sockets below it allow ${HOME_BYTES_MAX}. Choose a shorter path.`,
    )
  }
  return {
    id: idOfHome(home),
    home,
    cache: resolve(options.cache),
    code: resolve(options.code),
    host: options.host,
    ports: options.ports,
    apiUrl: urlOf(options.host, options.ports.api),
    gatewayUrl: urlOf(options.host, options.ports.gateway),
    internalHost: options.internalHost,
    internalUrl: urlOf(options.internalHost, options.ports.internal).replace(/^http:/, 'https:'),
  }
}

/** Where things lie below the home. */
export const paths = {
  run: (home: string) => join(home, 'run'),
  log: (home: string, role: string) => join(home, 'log', `${role}.log`),
  logs: (home: string) => join(home, 'log'),
  pid: (home: string, role: string) => join(home, 'run', `${role}.pid`),
  state: (home: string) => join(home, 'run', 'installation.json'),
  crashAt: (home: string, role: string) => join(home, 'run', `crash-at.${role}`),
  codeView: (home: string) => join(home, 'run', 'code'),
  compileCache: (home: string, role: string) => join(home, 'run', 'compiled', role),
  postgresSocket: (home: string) => join(home, 'run', 'postgres'),
  postgresData: (home: string) => join(home, 'postgres'),
  secret: (home: string, name: string) => join(home, 'secrets', name),
  secrets: (home: string) => join(home, 'secrets'),
  gatewayState: (home: string) => join(home, 'gateway'),
  hostState: (home: string) => join(home, 'host'),
  adminKey: (home: string) => join(home, 'admin.key'),
  tenantKey: (home: string) => join(home, 'tenant.key'),
  profile: (home: string) => join(home, 'profile.json'),
  settings: (home: string) => join(home, 'settings.json'),
}
