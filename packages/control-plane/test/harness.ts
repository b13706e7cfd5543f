/** A control plane over a fresh database, keys of every role, and simulated hosts. Everything is stopped when the test file ends. */
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPaths } from 'node:path'
import { after, before } from 'node:test'
import { type CreatedJoinToken, type Operation, type Problem, parseProblem, type Role, type Sandbox } from '@sandglass/contract'
import { OwnIdentity } from '@sandglass/identity'
import { join, newKeyPem } from '@sandglass/identity/join'
import type { Tracing } from '@sandglass/telemetry'
import { MachineClient, SimulatedHost, type SimulatedHostOptions, startTestPostgres, TEST_AUTHORITY, type TestPostgres, until } from '@sandglass/testkit'
import pg from 'pg'
import type { Config } from '../src/config.ts'
import { NO_RULES } from '../src/domain/placement/fleet-rooms.ts'
import { DEFAULT_RATES, DEFAULT_TIMING, type Faults, migrate, realWorld, type Timing } from '../src/index.ts'
import type { ReconcilerStatus } from '../src/reconcilers/reconciler.ts'
import type { World } from '../src/world.ts'
import { hintsOfRun } from './hints.ts'

export const NO_POOLS: Config['pools'] = { enabled: false, floors: [], ceiling: 100, memoryShare: 0.5 }

export const TEMPLATE = { name: 'base', digest: `sha256:${'a'.repeat(64)}` }

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const newKey = (): string => `sgk_${randomBytes(32).toString('base64url')}`

/** One Postgres for the tests of a file. Call it at the top of the file. */
export function usePostgres(): { readonly current: TestPostgres } {
  let postgres: TestPostgres | undefined
  before(async () => {
    postgres = await startTestPostgres(migrate)
  })
  after(async () => {
    await postgres?.stop()
  })
  return {
    get current() {
      if (postgres === undefined) throw new Error('Postgres is not started')
      return postgres
    },
  }
}

export type Answer<T> = { readonly status: number; readonly headers: Headers; readonly body: T; readonly problem: Problem | undefined }

export type CallOptions = { readonly key?: string | undefined; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }

/** What two processes of one installation have in common. */
type Shared = {
  readonly databaseUrl: string
  readonly keys: Readonly<Record<Role, string>>
}

export type RigOptions = {
  readonly timing?: Partial<Timing>
  readonly faults?: Faults
  readonly world?: Partial<Pick<World, 'monotonicMs' | 'wallMs' | 'hint'>>
  readonly tracing?: Tracing
  /** A second process over the same database, with the same keys. */
  readonly twinOf?: Shared
  readonly config?: Partial<Config>
  /** Folder of the sources to run; default: the real ones. */
  readonly source?: string
}

type Modules = {
  readonly index: typeof import('../src/index.ts')
  readonly database: typeof import('../src/store/database.ts')
  readonly placement: typeof import('../src/services/place-sandbox.ts')
  readonly pools: typeof import('../src/store/pools.ts')
  readonly release: typeof import('../src/services/runtime-release.ts')
  readonly events: typeof import('../src/store/events.ts')
  readonly sweeper: typeof import('../src/reconcilers/host-lease-sweeper.ts')
  readonly sightings: typeof import('../src/hosts/lease-sightings.ts')
  readonly catalogue: typeof import('../src/metrics/catalogue.ts')
  readonly quotas: typeof import('../src/store/quotas.ts')
  readonly sandboxes: typeof import('../src/store/sandboxes.ts')
}

async function loadModules(source: string): Promise<Modules> {
  const load = (file: string) => import(joinPaths(source, file))
  return {
    index: await load('index.ts'),
    database: await load('store/database.ts'),
    placement: await load('services/place-sandbox.ts'),
    pools: await load('store/pools.ts'),
    release: await load('services/runtime-release.ts'),
    events: await load('store/events.ts'),
    sweeper: await load('reconcilers/host-lease-sweeper.ts'),
    sightings: await load('hosts/lease-sightings.ts'),
    catalogue: await load('metrics/catalogue.ts'),
    quotas: await load('store/quotas.ts'),
    sandboxes: await load('store/sandboxes.ts'),
  }
}

const keyPair = generateKeyPairSync('ed25519')

export type Rig = Awaited<ReturnType<typeof startRig>>

/** Starts a control plane. `await using` stops it, its hosts and its connections. */
export async function startRig(postgres: TestPostgres, options: RigOptions = {}) {
  const databaseUrl = options.twinOf?.databaseUrl ?? (await postgres.createDatabase())
  const templatesDir = mkdtempSync(joinPaths(tmpdir(), 'sandglass-templates-'))
  writeManifest(templatesDir, TEMPLATE)
  const { keys } = options.twinOf ?? {
    keys: { operator: newKey(), owner: newKey(), member: newKey(), viewer: newKey() } satisfies Record<Role, string>,
  }
  const logLines: string[] = []
  const config: Config = {
    host: '127.0.0.1',
    port: 0,
    internalHost: '127.0.0.1',
    internalPort: 0,
    internalUrl: undefined,
    databaseUrl,
    ticketKey: keyPair.privateKey,
    authorityKey: TEST_AUTHORITY.privateKey,
    bootstrapKeys: Object.entries(keys).map(([name, key]) => ({ name, role: name as Role, sha256: sha256(key) })),
    gatewayUrls: ['http://127.0.0.1:7071'],
    bootstrapJoinTokens: [],
    templatesDir,
    region: 'l1',
    cpuOvercommit: 4,
    logLevel: 'info',
    allowedOrigins: new Set(),
    openapiFile: joinPaths(import.meta.dirname, '../../../openapi/openapi.json'),
    // Tests that are about pools say which they want.
    pools: NO_POOLS,
    placement: NO_RULES,
    timing: { ...DEFAULT_TIMING, sweepMs: 200, retryBaseMs: 5, restartBaseMs: 5, resendMs: 300, ...options.timing },
    rates: DEFAULT_RATES,
    ...options.config,
  }
  const modules = await loadModules(options.source ?? joinPaths(import.meta.dirname, '../src'))
  const controlPlane = await modules.index.startControlPlane(config, {
    ...realWorld,
    ...hintsOfRun(config.timing.sweepMs),
    ...options.world,
    logStream: {
      write: (line) => {
        logLines.push(line)
        if (process.env['SANDGLASS_TEST_LOG'] !== undefined) process.stderr.write(line)
      },
    },
    ...(options.faults === undefined ? {} : { faults: options.faults }),
    ...(options.tracing === undefined ? {} : { tracing: options.tracing }),
  })
  const sql = new pg.Pool({ connectionString: databaseUrl, max: 4 })
  sql.on('error', () => undefined)
  const hosts: SimulatedHost[] = []
  /** A database of its own, as a second scheduler has one. */
  const db = new modules.database.Database({
    url: databaseUrl,
    poolSizes: { requests: 4, hosts: 2, reconcilers: 8 },
    origin: 'test',
    onCommit: () => undefined,
    onIdleError: () => undefined,
  })

  const call = async <T>(method: string, path: string, { key = keys.member, body, headers = {} }: CallOptions = {}): Promise<Answer<T>> => {
    const response = await fetch(`${controlPlane.url}${path}`, {
      method,
      headers: {
        ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(90_000),
    })
    const text = await response.text()
    const isJson = (response.headers.get('content-type') ?? '').includes('json')
    const value = isJson ? JSON.parse(text) : text
    return { status: response.status, headers: response.headers, body: value as T, problem: parseProblem(value) }
  }

  return {
    url: controlPlane.url,
    internalUrl: controlPlane.internalUrl,
    databaseUrl,
    config,
    modules,
    db,
    stop: () => controlPlane.stop(),
    keys,
    /** As a gateway of the installation. */
    gateway: new MachineClient(controlPlane.internalUrl, TEST_AUTHORITY.identity({ role: 'gateway', name: 'test' })),
    templatesDir,
    logLines,
    sql,
    hosts,
    call,
    create: (
      body: unknown = {},
      { wait = 10, idempotencyKey, key, traceparent }: { wait?: number; idempotencyKey?: string; key?: string; traceparent?: string } = {},
    ) =>
      call<Sandbox>('POST', '/v1/sandboxes', {
        key,
        body: { isolation: 'fake', ...(body as object) },
        headers: {
          ...(wait > 0 ? { prefer: `wait=${wait}` } : {}),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(traceparent === undefined ? {} : { traceparent }),
        },
      }),
    get: async (id: string) => (await call<Sandbox>('GET', `/v1/sandboxes/${id}`)).body,
    remove: (id: string, wait = 10) => call<Operation>('DELETE', `/v1/sandboxes/${id}`, { headers: wait > 0 ? { prefer: `wait=${wait}` } : {} }),
    run: (
      want: 'start' | 'stop',
      id: string,
      { wait = 10, idempotencyKey, traceparent }: { wait?: number; idempotencyKey?: string; traceparent?: string } = {},
    ) =>
      call<Sandbox>('POST', `/v1/sandboxes/${id}/${want}`, {
        headers: {
          ...(wait > 0 ? { prefer: `wait=${wait}` } : {}),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(traceparent === undefined ? {} : { traceparent }),
        },
      }),
    operation: async (id: string) => (await call<Operation>('GET', `/v1/operations/${id}`)).body,
    /** Its reconcilers have looked at what is there, also once more since it listens: those without wake-ups look again after their period. */
    settled: async (): Promise<void> => {
      await until('it to listen', async () => (await call('GET', '/readyz', { key: '' })).status === 200)
      await until('the first looks', async () => {
        const { items } = (await call<{ items: ReconcilerStatus[] }>('GET', '/internal/v1/reconcilers', { key: keys.operator })).body
        return items.every((item) => item.runs > 0 && !item.running)
      })
    },
    rows: async <T extends object>(text: string, values: unknown[] = []): Promise<T[]> => (await sql.query<T>(text, values)).rows,
    host: async (hostOptions: Partial<SimulatedHostOptions> = {}): Promise<SimulatedHost> => {
      const host = new SimulatedHost({ url: controlPlane.internalUrl, templates: [TEMPLATE], ...hostOptions })
      hosts.push(host)
      await host.join()
      return host
    },
    /** A host that was removed comes back: with a new token, and a new key. */
    joinAnew: async (host: SimulatedHost): Promise<void> => {
      const { body } = await call<CreatedJoinToken>('POST', '/v1/join-tokens', { key: keys.operator, body: {} })
      const [keyPem, wallMs] = [newKeyPem(), () => Date.now()]
      const issued = await join({ controlUrl: controlPlane.internalUrl, token: body.token, name: host.id, keyPem, wallMs })
      host.become(new OwnIdentity(keyPem, { certificatePem: issued.certificate_pem, caPems: issued.ca_pem }, wallMs))
    },
    newKey: async (tenant: string, role: Role = 'owner'): Promise<string> =>
      (await call<{ key: string }>('POST', '/v1/api-keys', { key: keys.operator, body: { name: 'test', role, tenant } })).body.key,
    async [Symbol.asyncDispose]() {
      for (const host of hosts) await host.leave()
      await controlPlane.stop()
      await sql.end()
      await db.close()
      rmSync(templatesDir, { recursive: true, force: true })
    },
  }
}

export function writeManifest(templatesDir: string, template: { name: string; digest: string }): void {
  const digest12 = template.digest.slice('sha256:'.length).slice(0, 12)
  const manifest = { ...template, file: `${template.name}-${digest12}.erofs`, size_bytes: 1_000, packages: [], created_at: '2026-01-01T00:00:00.000Z' }
  writeFileSync(joinPaths(templatesDir, `${template.name}.json`), JSON.stringify(manifest))
}
