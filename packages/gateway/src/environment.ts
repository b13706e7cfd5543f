/** The gateway's settings, from the environment of its process. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { MACHINE_NAME_PATTERN } from '@sandglass/contract'
import { parseOrigins } from '@sandglass/contract/cors'
import { parseUrls } from '@sandglass/contract/replicas'

export type Environment = {
  readonly host: string
  readonly port: number
  /** Of replicas of one control plane, their listeners for machines; any will do. */
  readonly controlUrls: readonly [string, ...string[]]
  /** Of this gateway among those of the installation. */
  readonly name: string
  readonly identityFile: string
  /** A join token, for where there is no identity yet. */
  readonly joinToken: string | undefined
  /** Exact origins of pages that may come here. */
  readonly allowedOrigins: ReadonlySet<string>
}

const DEFAULT_PORT = 7071

function required(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set`)
  return value
}

function portOf(text: string | undefined): number {
  const port = Number(text ?? DEFAULT_PORT)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error('SANDGLASS_GATEWAY_PORT is not a port')
  return port
}

const MACHINE_NAME = new RegExp(MACHINE_NAME_PATTERN)

function nameOf(text: string): string {
  if (!MACHINE_NAME.test(text)) throw new Error('SANDGLASS_GATEWAY_NAME must be at most 63 of a-z, 0-9 and -')
  return text
}

/** @throws Error that names the variable that is missing or wrong, never its value */
export function readEnvironment(env: NodeJS.ProcessEnv): Environment {
  const controlUrls = parseUrls(required(env, 'SANDGLASS_CONTROL_URL'))
  if (controlUrls === undefined) throw new Error('SANDGLASS_CONTROL_URL is not a URL, or several separated by commas')
  const tokenFile = env['SANDGLASS_JOIN_TOKEN_FILE']
  return {
    host: env['SANDGLASS_GATEWAY_HOST'] ?? '127.0.0.1',
    port: portOf(env['SANDGLASS_GATEWAY_PORT']),
    controlUrls,
    name: nameOf(env['SANDGLASS_GATEWAY_NAME'] ?? hostname().toLowerCase()),
    identityFile: required(env, 'SANDGLASS_IDENTITY_FILE'),
    joinToken: tokenFile === undefined || tokenFile === '' ? undefined : readFileSync(tokenFile, 'utf8').trim(),
    allowedOrigins: parseOrigins(env['SANDGLASS_ORIGINS']),
  }
}
