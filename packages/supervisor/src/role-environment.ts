/**
 * How each role is configured: environment variables, with paths where a secret is meant. This table is the one place that knows them all.
 */
import { join } from 'node:path'
import { LIMITS } from '@sandglass/contract/limits'
import { type Installation, paths } from './installation.ts'

export const ROLES = ['postgres', 'control-plane', 'gateway', 'host-agent'] as const
export type RoleName = (typeof ROLES)[number]

type Environment = Readonly<Record<string, string>>

/** The control plane's own database and user, see postgres.ts; peer authentication, so there is no password. */
export const databaseUrl = (home: string): string => `postgres://sandglass@/sandglass?host=${encodeURIComponent(paths.postgresSocket(home))}`

const controlPlane = (installation: Installation): Environment => ({
  SANDGLASS_API_HOST: installation.host,
  SANDGLASS_API_PORT: String(installation.ports.api),
  SANDGLASS_DATABASE_URL: databaseUrl(installation.home),
  SANDGLASS_TICKET_KEY_FILE: paths.secret(installation.home, 'ticket.key'),
  SANDGLASS_CA_KEY_FILE: paths.secret(installation.home, 'ca.key'),
  SANDGLASS_JOIN_TOKENS_FILE: paths.secret(installation.home, 'join-tokens.json'),
  SANDGLASS_INTERNAL_HOST: installation.internalHost,
  SANDGLASS_INTERNAL_PORT: String(installation.ports.internal),
  SANDGLASS_BOOTSTRAP_KEYS_FILE: paths.secret(installation.home, 'bootstrap-keys.json'),
  SANDGLASS_GATEWAY_URL: installation.gatewayUrl,
  SANDGLASS_TEMPLATES_DIR: join(installation.cache, 'templates'),
})

const gateway = (installation: Installation): Environment => ({
  SANDGLASS_GATEWAY_HOST: installation.host,
  SANDGLASS_GATEWAY_PORT: String(installation.ports.gateway),
  SANDGLASS_CONTROL_URL: installation.internalUrl,
  SANDGLASS_GATEWAY_NAME: `local-${installation.id}`,
  SANDGLASS_IDENTITY_FILE: join(paths.gatewayState(installation.home), 'identity.pem'),
  SANDGLASS_JOIN_TOKEN_FILE: paths.secret(installation.home, 'gateway.join'),
})

/** The port of its health and metrics is given at each start, see roles.ts. */
const hostAgent = (installation: Installation): Environment => ({
  SANDGLASS_CONTROL_URL: installation.internalUrl,
  SANDGLASS_JOIN_TOKEN_FILE: paths.secret(installation.home, 'host.join'),
  SANDGLASS_HOST_STATE_DIR: paths.hostState(installation.home),
  SANDGLASS_RUNSC: join(installation.cache, 'bin/runsc'),
  SANDGLASS_GUEST_AGENT: join(installation.cache, 'guest-agent/sandglass-guest'),
  SANDGLASS_WARDEN: join(installation.cache, 'warden/sandglass-warden'),
  SANDGLASS_TEMPLATES_DIR: join(installation.cache, 'templates'),
  SANDGLASS_INSTALLATION: installation.id,
})

/** Of OpenTelemetry's own specification; @sandglass/telemetry reads them. */
const TRACING = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_SDK_DISABLED']

/** Settings of the operator that reach a role unchanged when they are set where `up` is called. */
const PASSED_ON: Readonly<Record<RoleName, readonly string[]>> = {
  postgres: [],
  'control-plane': [
    'SANDGLASS_ORIGINS',
    'SANDGLASS_REGION',
    'SANDGLASS_INTERNAL_URL',
    'SANDGLASS_CPU_OVERCOMMIT',
    'SANDGLASS_RATE_KEY_REQUESTS',
    'SANDGLASS_RATE_TENANT_REQUESTS',
    'SANDGLASS_LOG_LEVEL',
    'SANDGLASS_PLACEMENT_HEADROOM',
    'SANDGLASS_POOL_FLOOR',
    'SANDGLASS_POOL_FLOOR_SPECS',
    'SANDGLASS_POOL_CEILING',
    'SANDGLASS_POOL_MEMORY_SHARE',
    'SANDGLASS_LEASE_MS',
  ],
  gateway: ['SANDGLASS_ORIGINS'],
  'host-agent': [
    'SANDGLASS_HOST_NAME',
    'SANDGLASS_DATA_PLANE_HOST',
    'SANDGLASS_DATA_PLANE_ADVERTISED',
    'SANDGLASS_DATA_PLANE_PORT',
    'SANDGLASS_CAPACITY_VCPU',
    'SANDGLASS_CAPACITY_MEMORY_MB',
    'SANDGLASS_CAPACITY_DISK_GB',
    'SANDGLASS_RESERVE_CPUS',
    'SANDGLASS_RESERVE_MEMORY_MB',
    'SANDGLASS_RESERVE_DISK_GB',
    'SANDGLASS_FAKE_DRIVER',
    'SANDGLASS_LEASE_RENEWAL_MS',
  ],
}

export const ALL_PASSED_ON: readonly string[] = [...new Set([...Object.values(PASSED_ON).flat(), ...TRACING])]

const OWN: Readonly<Record<RoleName, (installation: Installation) => Environment>> = {
  postgres: () => ({}),
  'control-plane': controlPlane,
  gateway,
  'host-agent': hostAgent,
}

/** Frames, rows and buffers come and go: a young generation that grows to V8's default holds tens of MiB of them. */
const HEAP_OPTIONS = '--max-semi-space-size=4'

/**
 * A lease that is shortened for the control plane is shortened for its host in the same proportion: a host that counted on a longer one would go on with what
 * is given to another already.
 */
function leaseOfHost(outer: NodeJS.ProcessEnv): Environment {
  const leaseMs = Number(outer['SANDGLASS_LEASE_MS'] ?? '')
  if (!(leaseMs > 0)) return {}
  const renewalMs = Math.round(leaseMs * (1 - LIMITS.leaseMarginMs / LIMITS.leaseMs))
  const asked = Number(outer['SANDGLASS_LEASE_RENEWAL_MS'] ?? '')
  return { SANDGLASS_LEASE_RENEWAL_MS: String(asked > 0 ? Math.min(asked, renewalMs) : renewalMs) }
}

/** The whole environment of a role: nothing is inherited but what is named here. */
export function roleEnvironment(role: RoleName, installation: Installation, outer: NodeJS.ProcessEnv): Environment {
  const passed = [...PASSED_ON[role], ...(role === 'postgres' ? [] : TRACING)].flatMap((name) => {
    const value = outer[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LANG: 'C.UTF-8',
    HOME: '/nonexistent',
    NODE_ENV: 'production',
    NODE_OPTIONS: HEAP_OPTIONS,
    NODE_COMPILE_CACHE: paths.compileCache(installation.home, role),
    SANDGLASS_HOME: installation.home,
    ...Object.fromEntries(passed),
    ...(role === 'host-agent' ? leaseOfHost(outer) : {}),
    ...OWN[role](installation),
  }
}
