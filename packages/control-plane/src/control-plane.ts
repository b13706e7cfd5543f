/**
 * One control plane process: API and reconcilers over one database. Any number of them may run; nothing is kept here that the tables do not hold.
 */
import { randomBase32 } from '@sandglass/contract'
import { Admission } from './admission/admission.ts'
import { apiKeyRoutes } from './api/api-keys.ts'
import { documentRoutes } from './api/documents.ts'
import { Drain } from './api/drain.ts'
import { eventRoutes } from './api/events.ts'
import { healthRoutes } from './api/health.ts'
import { hostRoutes } from './api/hosts.ts'
import { operationRoutes } from './api/operations.ts'
import { sandboxRoutes } from './api/sandboxes.ts'
import { makeServer, observeRequests } from './api/server.ts'
import { templateRoutes } from './api/templates.ts'
import type { Config } from './config.ts'
import type { Context } from './context.ts'
import { ChangeFeed } from './events/change-feed.ts'
import { Notifications } from './events/notifications.ts'
import { OperationWaiters } from './events/operation-waiters.ts'
import { WakeBus } from './events/wake-bus.ts'
import { HostDesk } from './hosts/host-desk.ts'
import { internalHostRoutes } from './hosts/host-routes.ts'
import { TicketSigner } from './hosts/ticket-signer.ts'
import { internalGatewayRoutes } from './internal/gateway-routes.ts'
import { controlPlaneMetrics } from './metrics/catalogue.ts'
import { Reconcilers } from './reconcilers/all.ts'
import { bootstrap } from './services/bootstrap.ts'
import { FleetView } from './services/fleet-view.ts'
import { KeyUsage } from './services/key-usage.ts'
import { TemplateScan } from './services/template-scan.ts'
import { Database } from './store/database.ts'
import { migrate } from './store/migrate.ts'
import { realWorld, type World } from './world.ts'

export type ControlPlane = {
  readonly url: string
  /** Ends streams and waits, finishes requests, stops reconcilers, closes connections, in this order. */
  stop(): Promise<void>
}

const POOL_SIZES = { requests: 16, hosts: 6, reconcilers: 5 } as const

export async function startControlPlane(config: Config, world: World = realWorld): Promise<ControlPlane> {
  await migrate(config.databaseUrl)
  const app = makeServer(config, world)
  const { log } = app
  const bus = new WakeBus()
  const origin = randomBase32(world.random)
  const db = new Database({
    url: config.databaseUrl,
    poolSizes: POOL_SIZES,
    origin,
    onCommit: (wakes) => {
      bus.emit(wakes)
      reconcilers.relay()
    },
    onIdleError: (error) => log.warn({ err: error }, 'an idle database connection broke'),
  })
  const metrics = controlPlaneMetrics()
  const waiters = new OperationWaiters(db.for('reconcilers'), bus)
  const templates = new TemplateScan({ directory: config.templatesDir, db: db.for('reconcilers'), random: world.random, log })
  const fleet = new FleetView({ leaseMs: config.timing.leaseMs, monotonicMs: world.monotonicMs })
  bus.on('placement', () => fleet.forget())
  const desk = new HostDesk()
  const context: Context = { config, world, log, db, bus, waiters, metrics, templates, desk, fleet, signer: new TicketSigner(config.ticketKey) }
  const keyUsage = new KeyUsage(db.for('reconcilers'))
  const feed = new ChangeFeed(db.for('reconcilers'), bus)
  const reconcilers = new Reconcilers(context, keyUsage, feed)
  const notifications = new Notifications({ url: config.databaseUrl, origin, bus, log })
  const streams = new Set<() => void>()
  const drain = new Drain(app)

  observeRequests(app, world, metrics)
  const admission = new Admission(config.rates, world.monotonicMs)
  const routes = { ...context, keyUsage, admission }
  for (const register of [sandboxRoutes, operationRoutes, templateRoutes, hostRoutes, apiKeyRoutes]) {
    await app.register(async (scope) => register(scope, routes))
  }
  await app.register(async (scope) => eventRoutes(scope, routes, feed))
  await app.register(async (scope) => internalHostRoutes(scope, context, streams))
  await app.register(async (scope) => internalGatewayRoutes(scope, context, streams))
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
  const url = await app.listen({ host: config.host, port: config.port })
  log.info({ url }, 'control plane is up')

  let stopped: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    waiters.releaseAll()
    for (const close of [...streams]) close()
    feed.close()
    await drain.close()
    await reconcilers.stop()
    await notifications.stop()
    await keyUsage.flush().catch((error: unknown) => log.warn({ err: error }, 'when keys were last used was not written'))
    await db.close()
    await world.tracing.stop().catch((error: unknown) => log.warn({ err: error }, 'the last traces were not sent'))
  }
  return {
    url,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}
