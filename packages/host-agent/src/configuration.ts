/** The agent's configuration: environment variables, parsed once. Secrets come in files, never in the environment. */
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { CodedError, LIMITS, parseUrls } from '@sandglass/contract'

export type Configuration = {
  /** Of replicas of one control plane, their listeners for machines; any will do. */
  readonly controlUrls: readonly [string, ...string[]]
  readonly identityFile: string
  /** Of a join token, for where there is no identity yet. */
  readonly joinTokenFile: string | undefined
  readonly stateDir: string
  readonly runsc: string
  readonly guestAgent: string
  readonly warden: string
  /** Of things that are gone after a reboot, by installation. */
  readonly runDir: string
  /** What a renewal is good for, from its sending: the lease without its margin. */
  readonly renewalMs: number
  readonly templatesDir: string
  /** Marks everything of this installation on the machine; two installations never touch one another. */
  readonly installation: string
  readonly hostName: string
  readonly capacity: { readonly vcpu: number | undefined; readonly memoryMb: number | undefined; readonly diskGb: number | undefined }
  /** Of the machine, kept back for the system where `capacity` does not say; in CPUs of the machine. */
  readonly reserve: { readonly cpus: number | undefined; readonly memoryMb: number | undefined; readonly diskGb: number | undefined }
  /** Where gateways come; `advertised` is what they dial where that is another address. */
  readonly dataPlane: { readonly address: string; readonly port: number; readonly advertised: string | undefined }
  readonly healthPort: number
  /** Offer the fake driver, which isolates nothing. For development and tests. */
  readonly fakeDriver: boolean
  readonly crashAt: string | undefined
}

type Env = Readonly<Record<string, string | undefined>>

/** No separator may be part of it: names of one installation must never begin with the name of another. */
const INSTALLATION = /^[a-z0-9]{1,32}$/
const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$/

function wrong(name: string, what: string): CodedError {
  return new CodedError('invalid_request', `${name} ${what}.`)
}

function required(env: Env, name: string): string {
  const value = env[name]
  if (value === undefined || value === '') throw wrong(name, 'is not set')
  return value
}

function path(env: Env, name: string, fallback?: string): string {
  const value = env[name] ?? fallback
  if (value === undefined || !value.startsWith('/') || value.includes('\0')) throw wrong(name, 'must be an absolute path')
  return value
}

function address(env: Env, name: string, fallback: string): string {
  const value = env[name] || fallback
  if (isIP(value) === 0) throw wrong(name, 'must be an IP address of this host')
  return value
}

function number(env: Env, name: string, pattern: RegExp, most: number): number | undefined {
  const value = env[name]
  if (value === undefined || value === '') return undefined
  if (!pattern.test(value) || Number(value) > most) throw wrong(name, `must be a number up to ${most}`)
  return Number(value)
}

/** It can be shortened, never prolonged: those who fence a host count on it. */
const RENEWAL_MS = LIMITS.leaseMs - LIMITS.leaseMarginMs
/** Or a name that gateways can resolve. */
const ADVERTISED = /^[A-Za-z0-9.:-]{1,253}$/

function advertised(env: Env, name: string): string | undefined {
  const value = env[name]
  if (value === undefined || value === '') return undefined
  if (!ADVERTISED.test(value)) throw wrong(name, 'must be an address or a host name')
  return value
}

const WHOLE = /^[0-9]{1,9}$/
const DECIMAL = /^[0-9]{1,9}(\.[0-9]{1,2})?$/

/** @throws CodedError `invalid_request` naming the variable */
export function readConfiguration(env: Env): Configuration {
  const cache = path(env, 'SANDGLASS_CACHE', '/var/cache/sandglass')
  const home = path(env, 'SANDGLASS_HOME', '/var/lib/sandglass')
  const stateDir = path(env, 'SANDGLASS_HOST_STATE_DIR', join(home, 'host'))
  const installation = required(env, 'SANDGLASS_INSTALLATION')
  if (!INSTALLATION.test(installation)) throw wrong('SANDGLASS_INSTALLATION', 'must be 1 to 32 characters of a-z and 0-9')
  const hostName = env['SANDGLASS_HOST_NAME'] ?? hostname()
  if (!HOST_NAME.test(hostName)) throw wrong('SANDGLASS_HOST_NAME', 'must be a host name of at most 63 characters')
  const controlUrls = parseUrls(env['SANDGLASS_CONTROL_URL'] ?? 'https://127.0.0.1:7073')
  if (controlUrls === undefined) throw wrong('SANDGLASS_CONTROL_URL', 'must be an https URL, or several separated by commas')
  return {
    controlUrls,
    identityFile: path(env, 'SANDGLASS_IDENTITY_FILE', join(stateDir, 'identity.pem')),
    joinTokenFile: env['SANDGLASS_JOIN_TOKEN_FILE'] === undefined ? undefined : path(env, 'SANDGLASS_JOIN_TOKEN_FILE'),
    stateDir,
    runsc: path(env, 'SANDGLASS_RUNSC', join(cache, 'bin/runsc')),
    guestAgent: path(env, 'SANDGLASS_GUEST_AGENT', join(cache, 'guest-agent/sandglass-guest')),
    warden: path(env, 'SANDGLASS_WARDEN', join(cache, 'warden/sandglass-warden')),
    runDir: path(env, 'SANDGLASS_RUN_DIR', '/run/sandglass'),
    renewalMs: number(env, 'SANDGLASS_LEASE_RENEWAL_MS', WHOLE, RENEWAL_MS) ?? RENEWAL_MS,
    templatesDir: path(env, 'SANDGLASS_TEMPLATES_DIR', join(cache, 'templates')),
    installation,
    hostName,
    capacity: {
      vcpu: number(env, 'SANDGLASS_CAPACITY_VCPU', DECIMAL, 100_000),
      memoryMb: number(env, 'SANDGLASS_CAPACITY_MEMORY_MB', WHOLE, 999_999_999),
      diskGb: number(env, 'SANDGLASS_CAPACITY_DISK_GB', WHOLE, 999_999_999),
    },
    reserve: {
      cpus: number(env, 'SANDGLASS_RESERVE_CPUS', DECIMAL, 100_000),
      memoryMb: number(env, 'SANDGLASS_RESERVE_MEMORY_MB', WHOLE, 999_999_999),
      diskGb: number(env, 'SANDGLASS_RESERVE_DISK_GB', WHOLE, 999_999_999),
    },
    dataPlane: {
      address: address(env, 'SANDGLASS_DATA_PLANE_HOST', '127.0.0.1'),
      port: number(env, 'SANDGLASS_DATA_PLANE_PORT', WHOLE, 65_535) ?? 0,
      advertised: advertised(env, 'SANDGLASS_DATA_PLANE_ADVERTISED'),
    },
    healthPort: number(env, 'SANDGLASS_HOST_HEALTH_PORT', WHOLE, 65_535) ?? 0,
    fakeDriver: env['SANDGLASS_FAKE_DRIVER'] === '1',
    crashAt: env['SANDGLASS_CRASH_AT'],
  }
}
