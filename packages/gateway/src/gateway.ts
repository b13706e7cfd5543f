/** All parts of the gateway, put together: started in one place, ended in the reverse order. */
import { LIMITS } from '@sandglass/contract'
import { AccessDesk } from './auth/access-desk.ts'
import { Admission } from './auth/admission.ts'
import type { ControlClient } from './auth/control-client.ts'
import { Feed } from './auth/feed.ts'
import { LiveSessions } from './auth/live-sessions.ts'
import { SessionCheck } from './auth/session-check.ts'
import { SessionTickets } from './auth/session-tickets.ts'
import { Drain } from './drain.ts'
import { BufferBudget } from './exec/buffer-budget.ts'
import type { HostConnector } from './hosts/host-connection.ts'
import { HostPool } from './hosts/host-pool.ts'
import { allowOrigins } from './http/allow-origins.ts'
import { buildApp } from './http/app.ts'
import { observeConnections } from './http/client-connections.ts'
import { registerDataPlane } from './http/data-plane.ts'
import { reasonOf } from './log.ts'
import { RouteTable } from './routes/route-table.ts'
import { acceptSessions } from './session/accept-sessions.ts'
import type { World } from './world.ts'

export type GatewayOptions = {
  readonly control: ControlClient
  readonly hosts: HostConnector
  readonly allowedOrigins: ReadonlySet<string>
  readonly world: World
}

export type Gateway = {
  /** @returns the port */
  listen(host: string, port: number): Promise<number>
  /** Stops accepting, tells sessions to connect again, waits for what is going on at most LIMITS.gatewayDrainMs, ends everything. */
  close(): Promise<void>
}

export function createGateway({ control, hosts, allowedOrigins, world }: GatewayOptions): Gateway {
  const table = new RouteTable(world.nowMs)
  const desk = new AccessDesk(control, table, world)
  const sessions = new LiveSessions()
  const pool = new HostPool(hosts, world)
  const tickets = new SessionTickets(world)
  const admission = new Admission(desk, sessions, table, pool, tickets, world)
  const check = new SessionCheck(desk, sessions, world)
  const feed = new Feed(control, check, world)
  const budget = new BufferBudget(LIMITS.execJsonBufferedBytes)
  world.metrics.from('sandglass_gateway_sessions', () => sessions.size)
  world.metrics.from('sandglass_gateway_buffered_bytes', () => budget.usedBytes)
  const app = buildApp(world, { isReady: () => admission.isOpen && feed.isConnected })
  observeConnections(app.server, world.metrics)
  allowOrigins(app, allowedOrigins)
  registerDataPlane(app, { admission, budget, tickets, world })
  acceptSessions(app.server, { admission, allowedOrigins, world })
  const drain = new Drain(app, sessions, admission, world)
  return {
    async listen(host, port) {
      feed.start()
      check.start()
      await app.listen({ host, port })
      const address = app.server.address()
      return typeof address === 'object' && address !== null ? address.port : port
    },
    async close() {
      await drain.run()
      check.stop()
      await feed.stop()
      pool.destroy()
      await world.tracing.stop().catch((error: unknown) => world.log('warn', 'traces_lost', { reason: reasonOf(error) }))
    },
  }
}
