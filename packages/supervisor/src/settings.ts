/** What an installation keeps about how it was started last, so that a later `up` without flags is the same installation. */
import { readFileSync } from 'node:fs'
import { CodedError } from '@sandglass/contract/errors'
import { closed, parserOf } from '@sandglass/contract/schema'
import Type, { type Static } from 'typebox'
import { writeFileAtomic } from './atomic-file.ts'
import { type Ports, paths } from './installation.ts'

const DEFAULT_PORTS: Ports = { api: 7070, gateway: 7071, hostHealth: 0, internal: 0 }
const DEFAULT_HOST = '127.0.0.1'

const SettingsSchema = closed({
  host: Type.String({ minLength: 1, maxLength: 255 }),
  api_port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  gateway_port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  host_health_port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
  internal_host: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  internal_port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
})
type Settings = Static<typeof SettingsSchema>
const parser = parserOf(SettingsSchema)

export type Wishes = { readonly apiPort?: number | undefined; readonly gatewayPort?: number | undefined; readonly host?: string | undefined }

function readSettings(home: string): Settings | undefined {
  try {
    return parser.parse(JSON.parse(readFileSync(paths.settings(home), 'utf8')))
  } catch {
    return undefined
  }
}

export type Resolved = { readonly host: string; readonly internalHost: string; readonly ports: Ports }

export function writeSettings(home: string, { host, internalHost, ports }: Resolved): void {
  const settings: Settings = {
    host,
    api_port: ports.api,
    gateway_port: ports.gateway,
    host_health_port: ports.hostHealth,
    internal_host: internalHost,
    internal_port: ports.internal,
  }
  writeFileAtomic(paths.settings(home), `${JSON.stringify(settings)}\n`, 0o644)
}

function portFrom(environment: NodeJS.ProcessEnv, name: string, least = 1): number | undefined {
  const text = environment[name]
  if (text === undefined || text === '') return undefined
  const port = Number(text)
  if (!Number.isInteger(port) || port < least || port > 65_535)
    throw new CodedError('invalid_request', `${name} must be a port from ${least} to 65535, not ${JSON.stringify(text)}.`)
  return port
}

/** Wishes, then the environment, then the last start, then the defaults. @throws CodedError `invalid_request` */
export function resolveSettings(home: string, environment: NodeJS.ProcessEnv, wishes: Wishes): Resolved {
  const kept = readSettings(home)
  const api = wishes.apiPort ?? portFrom(environment, 'SANDGLASS_API_PORT') ?? kept?.api_port ?? DEFAULT_PORTS.api
  const gateway = wishes.gatewayPort ?? portFrom(environment, 'SANDGLASS_GATEWAY_PORT') ?? kept?.gateway_port ?? DEFAULT_PORTS.gateway
  const hostHealth = portFrom(environment, 'SANDGLASS_HOST_HEALTH_PORT', 0) ?? kept?.host_health_port ?? DEFAULT_PORTS.hostHealth
  const internal = portFrom(environment, 'SANDGLASS_INTERNAL_PORT', 0) ?? kept?.internal_port ?? DEFAULT_PORTS.internal
  if (internal !== 0 && [api, gateway, hostHealth].includes(internal)) {
    throw new CodedError(
      'invalid_request',
      `The listener for hosts and gateways cannot share port ${internal}. Type: SANDGLASS_INTERNAL_PORT=${internal + 3} sandglass up`,
    )
  }
  if (hostHealth === api || hostHealth === gateway) {
    throw new CodedError(
      'invalid_request',
      `The host agent cannot share port ${hostHealth} with the API or the gateway. Type: SANDGLASS_HOST_HEALTH_PORT=${hostHealth + 2} sandglass up`,
    )
  }
  if (api === gateway) throw new CodedError('invalid_request', `API and gateway cannot share port ${api}. Type: sandglass up --gateway-port ${api + 1}`)
  return {
    host: wishes.host ?? environment['SANDGLASS_API_HOST'] ?? kept?.host ?? DEFAULT_HOST,
    internalHost: environment['SANDGLASS_INTERNAL_HOST'] ?? kept?.internal_host ?? DEFAULT_HOST,
    ports: { api, gateway, hostHealth, internal },
  }
}
