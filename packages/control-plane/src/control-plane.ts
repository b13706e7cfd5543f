/**
 * One control plane process: API and reconcilers over one database. Any number of them may run; nothing is kept here that the tables do not hold.
 */
import { LIMITS, randomBase32 } from '@sandglass/contract'
import { keysOf } from '@sandglass/identity'
import { Authority } from '@sandglass/identity/authority'
import type { FastifyInstance } from 'fastify'
import { Admission } from './admission/admission.ts'
import { apiKeyRoutes } from './api/api-keys.ts'
import { capacityRoutes } from './api/capacity.ts'
import { documentRoutes } from './api/documents.ts'
import { Drain } from './api/drain.ts'
import { eventRoutes } from './api/events.ts'
import { healthRoutes } from './api/health.ts'
import { hostRoutes } from './api/hosts.ts'
import { makeInternalServer } from './api/internal-server.ts'
import { joinTokenRoutes } from './api/join-tokens.ts'
import { operationRoutes } from './api/operations.ts'
import { sandboxRoutes } from './api/sandboxes.ts'
import { makeServer, observeRequests } from './api/server.ts'
import { templateRoutes } from './api/templates.ts'
import type { Config } from './config.ts'
import type { Context } from './context.ts'
import { ChangeFeed } from './events/change-feed.ts'
import { Notifications } from './events/notifications.ts'
import { OperationWaiters } from './events/operation-waiters.ts'
import { type Wake, WakeBus } from './events/wake-bus.ts'
import { HostDesk } from './hosts/host-desk.ts'
import { internalHostRoutes } from './hosts/host-routes.ts'
import { LeaseSightings } from './hosts/lease-sightings.ts'
import { TicketSigner } from './hosts/ticket-signer.ts'
import { IdentityDesk } from './identities/identity-desk.ts'
import { identityRoutes } from './identities/identity-routes.ts'
import { ownCertificate } from './identities/own-certificate.ts'
import { PeerGate } from './identities/peer-gate.ts'
import { RefusalLog } from './identities/refusal-log.ts'
import { internalGatewayRoutes } from './internal/gateway-routes.ts'
import { controlPlaneMetrics } from './metrics/catalogue.ts'
import { Reconcilers } from './reconcilers/all.ts'
import { bootstrap } from './services/bootstrap.ts'
import { FleetView } from './services/fleet-view.ts'
import { KeyUsage } from './services/key-usage.ts'
import { TemplateScan } from './services/template-scan.ts'
import { type ConnectionPool, Database, type Pools } from './store/database.ts'
import { migrate } from './store/migrate.ts'
import { pickOf, realWorld, type World } from './world.ts'

export type ControlPlane = {
  readonly url: string
  /** For hosts and gateways. */
  readonly internalUrl: string
  /** Ends streams and waits, finishes requests, stops reconcilers, closes connections, in this order. */
  stop(): Promise<void>
}

const POOL_SIZES = { requests: 16, hosts: 6, reconcilers: 5 } as const

/** How it is joined to what is outside of the process. */
export type Edges = {
  readonly migrate: (databaseUrl: string) => Promise<unknown>
  /** Undefined: the driver's own. */
  readonly pools?: (sizes: Readonly<Record<Pools, number>>) => Readonly<Record<Pools, ConnectionPool>>
  readonly notifications: (options: ConstructorParameters<typeof Notifications>[0]) => Pick<Notifications, 'connected' | 'start' | 'stop'>
  /** `public`: for clients; `internal`: for hosts and gateways. @returns its URL */
  readonly listen: (app: FastifyInstance, side: 'public' | 'internal') => Promise<string>
}

const realEdges = (config: Config): Edges => ({
  migrate,
  notifications: (options) => new Notifications(options),
  listen: (app, side) => app.listen(side === 'public' ? { host: config.host, port: config.port } : { host: config.internalHost, port: config.internalPort }),
})

export async function startControlPlane(config: Config, world: World = realWorld, edges: Edges = realEdges(config)): Promise<ControlPlane> {
  await edges.migrate(config.databaseUrl)
  const app = makeServer(config, world)
  const { log } = app
  const bus = new WakeBus(world.hint)
  const origin = randomBase32(world.random)
  const databaseOptions = {
    url: config.databaseUrl,
    poolSizes: POOL_SIZES,
    origin,
    onCommit: (wakes: readonly Wake[]) => {
      bus.emit(wakes)
      world.hint(() => reconcilers.relay(), 'wake-up')
    },
    onIdleError: (error: Error) => log.warn({ err: error }, 'an idle database connection broke'),
  }
  const db = new Database(databaseOptions, edges.pools?.(POOL_SIZES))
  const metrics = controlPlaneMetrics()
  const waiters = new OperationWaiters(db.for('reconcilers'), bus)
  const templates = new TemplateScan({ directory: config.templatesDir, db: db.for('reconcilers'), random: world.random, log })
  const fleet = new FleetView({ leaseMs: config.timing.leaseMs, monotonicMs: world.monotonicMs, rules: config.placement, pick: pickOf(world) })
  bus.on('placement', () => fleet.forget())
  const desk = new HostDesk(world.hint)
  const leases = new LeaseSightings(world.monotonicMs)
  const authority = new Authority(config.authorityKey)
  const refusals = new RefusalLog({
    db: db.for('hosts'),
    monotonicMs: world.monotonicMs,
    failed: (error) => log.warn({ err: error }, 'that a peer was refused was not written'),
  })
  let joinUrl = ''
  const context: Context = {
    config,
    world,
    log,
    db,
    bus,
    waiters,
    metrics,
    templates,
    desk,
    fleet,
    leases,
    signer: new TicketSigner(config.ticketKey),
    authority,
    refusals,
    joinUrl: () => joinUrl,
  }
  const keyUsage = new KeyUsage(db.for('reconcilers'))
  const feed = new ChangeFeed(db.for('reconcilers'), bus)
  const reconcilers = new Reconcilers(context, keyUsage, feed)
  const notifications = edges.notifications({ url: config.databaseUrl, origin, bus, log })
  const streams = new Set<() => void>()
  const drain = new Drain(app)
  const certificate = ownCertificate(authority, { region: config.region, name: origin })
  const internal = makeInternalServer(config, world, certificate(world.wallMs()))
  const internalDrain = new Drain(internal.app)
  const gate = new PeerGate({
    trust: { region: config.region, keys: keysOf([authority.certificatePem]) },
    desk: new IdentityDesk(db.for('hosts'), bus, world.monotonicMs),
    refusals,
    wallMs: world.wallMs,
    recheckMs: config.timing.heartbeatMs,
  })

  observeRequests(app, world, metrics)
  const admission = new Admission(config.rates, world.monotonicMs)
  const routes = { ...context, keyUsage, admission }
  for (const register of [sandboxRoutes, operationRoutes, templateRoutes, hostRoutes, joinTokenRoutes, capacityRoutes, apiKeyRoutes]) {
    await app.register(async (scope) => register(scope, routes))
  }
  await app.register(async (scope) => eventRoutes(scope, routes, feed))
  observeRequests(internal.app, world, metrics)
  await internal.app.register(async (scope) => identityRoutes(scope, context, gate))
  await internal.app.register(async (scope) => internalHostRoutes(scope, context, gate, streams))
  await internal.app.register(async (scope) => internalGatewayRoutes(scope, context, gate, streams))
  await app.register(async (scope) => documentRoutes(scope, config.openapiFile))
  const sources = {
    reconcilers: () => reconcilers.status(),
    listening: () => notifications.connected,
    openStreams: () => streams.size,
    eventStreams: () => feed.size,
    requests: () => admission.counts,
  }
  await app.register(async (scope) => healthRoutes(scope, context, sources))

  await bootstrap(db, config, world)
  await templates.run()
  notifications.start()
  reconcilers.start()
  const listening = await edges.listen(internal.app, 'internal')
  const internalUrl = listening.replace(/^http:/, 'https:')
  joinUrl = config.internalUrl ?? internalUrl
  const reissue = setInterval(() => internal.show(certificate(world.wallMs())), LIMITS.certificateLifeMs / 2)
  reissue.unref()
  const url = await edges.listen(app, 'public')
  log.info({ url, internal_url: internalUrl }, 'control plane is up')

  let stopped: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    waiters.releaseAll()
    for (const close of [...streams]) close()
    feed.close()
    clearInterval(reissue)
    await Promise.all([drain.close(), internalDrain.close()])
    await reconcilers.stop()
    await notifications.stop()
    await refusals.flush()
    await keyUsage.flush().catch((error: unknown) => log.warn({ err: error }, 'when keys were last used was not written'))
    await db.close()
    await world.tracing.stop().catch((error: unknown) => log.warn({ err: error }, 'the last traces were not sent'))
  }
  return {
    url,
    internalUrl,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}
