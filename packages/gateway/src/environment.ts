/** The gateway's settings, from the environment of its process. */
import { readFileSync } from 'node:fs'
import { parseOrigins } from '@sandglass/contract/cors'
import { parseUrls } from '@sandglass/contract/replicas'

export type Environment = {
  readonly host: string
  readonly port: number
  /** Replicas of one control plane; any will do. */
  readonly controlUrls: readonly [string, ...string[]]
  readonly gatewayToken: string
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

/** @throws Error that names the variable that is missing or wrong, never its value */
export function readEnvironment(env: NodeJS.ProcessEnv): Environment {
  const controlUrls = parseUrls(required(env, 'SANDGLASS_CONTROL_URL'))
  if (controlUrls === undefined) throw new Error('SANDGLASS_CONTROL_URL is not a URL, or several separated by commas')
  return {
    host: env['SANDGLASS_GATEWAY_HOST'] ?? '127.0.0.1',
    port: portOf(env['SANDGLASS_GATEWAY_PORT']),
    controlUrls,
    gatewayToken: readFileSync(required(env, 'SANDGLASS_GATEWAY_TOKEN_FILE'), 'utf8').trim(),
    allowedOrigins: parseOrigins(env['SANDGLASS_ORIGINS']),
  }
}
