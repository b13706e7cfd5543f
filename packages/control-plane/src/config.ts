/** Configuration: environment variables to one checked value. Every secret comes as a file or as a digest, never in the environment itself. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  CANARY_REGION,
  DEFAULT_RESOURCES,
  DEFAULT_TEMPLATE,
  LIMITS,
  MachineRoleSchema,
  parserOf,
  parseUrls,
  type Resources,
  ResourcesSchema,
  RoleSchema,
} from '@sandglass/contract'
import { parseOrigins } from '@sandglass/contract/cors'
import Type, { type Static } from 'typebox'
import type { RateLimits } from './admission/rate-limiter.ts'
import type { PlacementRules } from './domain/placement/fleet-rooms.ts'

const BootstrapKeysSchema = Type.Array(
  Type.Object(
    { name: Type.String({ minLength: 1, maxLength: 63 }), role: RoleSchema, sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }) },
    { additionalProperties: false },
  ),
)
export type BootstrapKey = Static<typeof BootstrapKeysSchema>[number]
const bootstrapKeys = parserOf(BootstrapKeysSchema)

const BootstrapJoinTokensSchema = Type.Array(
  Type.Object({ role: MachineRoleSchema, sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }) }, { additionalProperties: false }),
)
export type BootstrapJoinToken = Static<typeof BootstrapJoinTokensSchema>[number]
const bootstrapJoinTokens = parserOf(BootstrapJoinTokensSchema)

const resourceParser = parserOf(ResourcesSchema)

/** Periods and bounds that a test shortens. */
export type Timing = {
  /** Between two looks of a reconciler that nothing woke. */
  readonly sweepMs: number
  readonly startTimeoutMs: number
  /** Pause before the second attempt of a start; it doubles. */
  readonly retryBaseMs: number
  /** Pause before the first restart of a row; it doubles. */
  readonly restartBaseMs: number
  /** An order that is still due is not sent again sooner than this. */
  readonly resendMs: number
  readonly heartbeatMs: number
  readonly leaseMs: number
  /** As hosts are told at registration. */
  readonly renewPeriodMs: number
  /** Behind an unrenewed lease, before the host is fenced. */
  readonly fenceGraceMs: number
  /** Between two looks at the leases. */
  readonly fencePollMs: number
  /** An observer that did not look for longer counts anew. */
  readonly fenceGapMs: number
  readonly eventHeartbeatMs: number
  readonly eventStallMs: number
  /** How long an event waits for its position behind older transactions that are still open. */
  readonly eventHoldMs: number
}

export const DEFAULT_TIMING: Timing = {
  sweepMs: 2_000,
  startTimeoutMs: LIMITS.startTimeoutMs,
  retryBaseMs: 250,
  restartBaseMs: LIMITS.restartBackoffMs,
  resendMs: 2_000,
  heartbeatMs: 5_000,
  leaseMs: LIMITS.leaseMs,
  renewPeriodMs: LIMITS.renewPeriodMs,
  fenceGraceMs: LIMITS.fenceGraceMs,
  fencePollMs: LIMITS.fencePollMs,
  fenceGapMs: LIMITS.fenceGapMs,
  eventHeartbeatMs: LIMITS.eventHeartbeatMs,
  eventStallMs: LIMITS.eventStallMs,
  // No transaction of ours lives longer (store/database.ts).
  eventHoldMs: 10_000,
}

/** For tests: a lease can be shortened, and everything that is counted with it in proportion, so that what makes a fence safe still holds. */
const SHORTEST_LEASE_MS = 3_000

export function leaseTiming(leaseMs: number): Pick<Timing, 'leaseMs' | 'renewPeriodMs' | 'fenceGraceMs' | 'fencePollMs' | 'fenceGapMs'> {
  const shortened = (ms: number): number => Math.round((ms * leaseMs) / LIMITS.leaseMs)
  return {
    leaseMs,
    renewPeriodMs: shortened(LIMITS.renewPeriodMs),
    fenceGraceMs: shortened(LIMITS.fenceGraceMs),
    fencePollMs: shortened(LIMITS.fencePollMs),
    fenceGapMs: shortened(LIMITS.fenceGapMs),
  }
}

export type PoolSettings = {
  /** False: every pool is emptied, and none is made. */
  readonly enabled: boolean
  /** Members kept on every host without any demand; the template by name. */
  readonly floors: readonly { readonly driver: string; readonly template: string; readonly resources: Resources; readonly count: number }[]
  readonly ceiling: number
  readonly memoryShare: number
}

/** Members of the default size: the first create of somebody who has just begun is warm, and so is the next. */
const DEFAULT_POOL_FLOOR = 2

/** Of each control plane. */
export const DEFAULT_RATES: RateLimits = {
  keyRequests: LIMITS.apiRateKeyRequests,
  tenantRequests: LIMITS.apiRateTenantRequests,
  windowSeconds: LIMITS.apiRateWindowSeconds,
}

export type Config = {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Where hosts and gateways come, by TLS. */
  readonly internalHost: string
  /** 0: any free port. */
  readonly internalPort: number
  /** What machines are told to join at; undefined: the address that it listens on. */
  readonly internalUrl: string | undefined
  readonly databaseUrl: string
  readonly ticketKey: KeyObject
  /** Of the installation's CA; the same in every control plane. */
  readonly authorityKey: KeyObject
  readonly bootstrapKeys: readonly BootstrapKey[]
  /** Every gateway; a sandbox is told all, one of them first. */
  readonly gatewayUrls: readonly [string, ...string[]]
  /** Of machines that whoever starts this process lets in. */
  readonly bootstrapJoinTokens: readonly BootstrapJoinToken[]
  /** Undefined: no templates come from files. */
  readonly templatesDir: string | undefined
  /** Two characters; part of every sandbox id. */
  readonly region: string
  /** vCPUs offered for each one that a host has. */
  readonly cpuOvercommit: number
  readonly logLevel: string
  /** Exact origins of pages that may ask. */
  readonly allowedOrigins: ReadonlySet<string>
  readonly openapiFile: string
  readonly pools: PoolSettings
  readonly placement: PlacementRules
  readonly timing: Timing
  readonly rates: RateLimits
}

type Environment = Readonly<Record<string, string | undefined>>

/** @throws RangeError naming the variable that is missing or wrong */
export function configFrom(environment: Environment): Config {
  const required = (name: string): string => {
    const value = environment[name]
    if (value === undefined || value === '') throw new RangeError(`${name} is not set`)
    return value
  }
  const number = (name: string, fallback: number, minimum: number, maximum: number): number => {
    const text = environment[name]
    if (text === undefined || text === '') return fallback
    const value = Number(text)
    if (!(value >= minimum && value <= maximum)) throw new RangeError(`${name} must be a number from ${minimum} to ${maximum}`)
    return value
  }
  const flag = (name: string): boolean => {
    const text = environment[name] ?? ''
    if (!['', '0', '1'].includes(text)) throw new RangeError(`${name} must be 0 or 1`)
    return text === '1'
  }
  const gatewayUrls = parseUrls(required('SANDGLASS_GATEWAY_URL'))
  if (gatewayUrls === undefined) throw new RangeError('SANDGLASS_GATEWAY_URL must be an http or https URL, or several separated by commas')
  const poolFloor = number('SANDGLASS_POOL_FLOOR', DEFAULT_POOL_FLOOR, 0, LIMITS.poolMembers)
  const keysFile = environment['SANDGLASS_BOOTSTRAP_KEYS_FILE']
  const tokensFile = environment['SANDGLASS_JOIN_TOKENS_FILE']
  const region = environment['SANDGLASS_REGION'] ?? 'l1'
  if (!/^[a-z0-9]{2}$/.test(region) || region === CANARY_REGION) {
    throw new RangeError(`SANDGLASS_REGION must be two characters of a-z and 0-9, and not ${CANARY_REGION}`)
  }
  return {
    host: environment['SANDGLASS_API_HOST'] ?? '127.0.0.1',
    port: number('SANDGLASS_API_PORT', 7070, 0, 65_535),
    internalHost: environment['SANDGLASS_INTERNAL_HOST'] ?? '127.0.0.1',
    internalPort: number('SANDGLASS_INTERNAL_PORT', 7073, 0, 65_535),
    internalUrl: internalUrl(environment['SANDGLASS_INTERNAL_URL']),
    databaseUrl: required('SANDGLASS_DATABASE_URL'),
    ticketKey: signingKey('SANDGLASS_TICKET_KEY_FILE', fileText('SANDGLASS_TICKET_KEY_FILE', required('SANDGLASS_TICKET_KEY_FILE'))),
    authorityKey: signingKey('SANDGLASS_CA_KEY_FILE', fileText('SANDGLASS_CA_KEY_FILE', required('SANDGLASS_CA_KEY_FILE'))),
    bootstrapKeys: keysFile === undefined ? [] : parseBootstrapKeys(fileText('SANDGLASS_BOOTSTRAP_KEYS_FILE', keysFile)),
    gatewayUrls,
    bootstrapJoinTokens: tokensFile === undefined ? [] : parseJoinTokens(fileText('SANDGLASS_JOIN_TOKENS_FILE', tokensFile)),
    templatesDir: environment['SANDGLASS_TEMPLATES_DIR'],
    region,
    cpuOvercommit: number('SANDGLASS_CPU_OVERCOMMIT', 4, 0.1, 64),
    logLevel: environment['SANDGLASS_LOG_LEVEL'] ?? 'info',
    allowedOrigins: parseOrigins(environment['SANDGLASS_ORIGINS']),
    openapiFile: join(import.meta.dirname, '../../../openapi/openapi.json'),
    pools: {
      enabled: poolFloor > 0,
      floors: [
        { driver: 'gvisor', template: DEFAULT_TEMPLATE, resources: DEFAULT_RESOURCES, count: poolFloor },
        ...poolFloors(environment['SANDGLASS_POOL_FLOOR_SPECS']),
      ],
      ceiling: number('SANDGLASS_POOL_CEILING', 100, 1, LIMITS.poolMembers),
      memoryShare: number('SANDGLASS_POOL_MEMORY_SHARE', 0.5, 0, 1),
    },
    placement: { hostLossHeadroom: flag('SANDGLASS_PLACEMENT_HEADROOM') },
    timing: { ...DEFAULT_TIMING, ...leaseTiming(number('SANDGLASS_LEASE_MS', LIMITS.leaseMs, SHORTEST_LEASE_MS, LIMITS.leaseMs)) },
    rates: {
      keyRequests: number('SANDGLASS_RATE_KEY_REQUESTS', DEFAULT_RATES.keyRequests, 1, 1e9),
      tenantRequests: number('SANDGLASS_RATE_TENANT_REQUESTS', DEFAULT_RATES.tenantRequests, 1, 1e9),
      windowSeconds: DEFAULT_RATES.windowSeconds,
    },
  }
}

/** `template,vcpu,memory_mb,disk_gb,count[,driver]`, apart by `;`. */
function poolFloors(text = ''): PoolSettings['floors'] {
  const entries = text.split(';').filter((entry) => entry.trim() !== '')
  return entries.map((entry) => {
    const match = /^([a-z][a-z0-9-]*),([\d.]+),(\d+),(\d+),(\d+)(?:,(gvisor|fake))?$/.exec(entry.trim())
    const [, template = '', vcpu, memoryMb, diskGb, count, driver = 'gvisor'] = match ?? []
    const resources = { vcpu: Number(vcpu), memory_mb: Number(memoryMb), disk_gb: Number(diskGb) }
    if (match === null || !resourceParser.check(resources) || Number(count) > LIMITS.poolMembers) {
      throw new RangeError(`SANDGLASS_POOL_FLOOR_SPECS: ${entry} is not template,vcpu,memory_mb,disk_gb,count[,driver] within the limits of a sandbox`)
    }
    return { driver, template, resources, count: Number(count) }
  })
}

function fileText(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new RangeError(`${name}: ${path} cannot be read`, { cause })
  }
}

/** The text is not part of the error: it is a secret. */
function signingKey(name: string, pem: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    throw new RangeError(`${name} does not hold a private key in PEM`)
  }
  if (key.asymmetricKeyType !== 'ed25519') throw new RangeError(`${name} does not hold an Ed25519 key`)
  return key
}

function internalUrl(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  const url = URL.parse(text)
  if (url?.protocol !== 'https:' || url.pathname !== '/') throw new RangeError('SANDGLASS_INTERNAL_URL must be an https:// URL without a path')
  return url.origin
}

function parseJoinTokens(text: string): BootstrapJoinToken[] {
  try {
    return bootstrapJoinTokens.parse(JSON.parse(text))
  } catch (cause) {
    throw new RangeError('SANDGLASS_JOIN_TOKENS_FILE is not a list of {role, sha256}', { cause })
  }
}

function parseBootstrapKeys(text: string): BootstrapKey[] {
  try {
    return bootstrapKeys.parse(JSON.parse(text))
  } catch (cause) {
    throw new RangeError('SANDGLASS_BOOTSTRAP_KEYS_FILE is not a list of {name, role, sha256}', { cause })
  }
}
