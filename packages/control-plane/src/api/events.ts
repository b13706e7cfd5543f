/** /v1/events */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ChangeFeed } from '../events/change-feed.ts'
import { ChangeStream, type Since } from '../events/change-stream.ts'
import { feedHeads, readEvents } from '../store/events.ts'
import { type RouteContext, route } from './route.ts'

const HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' } as const

export function eventRoutes(app: FastifyInstance, context: RouteContext, feed: ChangeFeed): void {
  const { eventHeartbeatMs, eventStallMs } = context.config.timing

  route(app, context, 'streamEvents', async ({ principal, query, request, reply }) => {
    feed.requireRoom(principal)
    if (request.method === 'HEAD') {
      void reply.headers(HEADERS).send()
      return
    }
    request.place?.leave()
    reply.hijack()
    for (const [name, value] of Object.entries({ ...reply.getHeaders(), ...HEADERS })) if (value !== undefined) reply.raw.setHeader(name, value)
    reply.raw.writeHead(200)
    reply.raw.flushHeaders()
    const { tenantId } = principal
    const stream = new ChangeStream({
      source: {
        head: async () => (await feedHeads(context.db, [tenantId])).get(tenantId) ?? 0,
        after: (position, limit) => readEvents(context.db, tenantId, position, limit),
      },
      output: reply.raw,
      since: sinceOf(request) ?? query.since ?? 'now',
      requestId: request.id,
      heartbeatMs: eventHeartbeatMs,
      stallMs: eventStallMs,
    })
    await feed.serve(stream, principal)
  })
}

/** A browser that comes back sends the header and still the query of its first request, so the header goes first. */
function sinceOf(request: FastifyRequest): Since | undefined {
  const header = request.headers['last-event-id']
  if (header === undefined || header === '') return undefined
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : 'unknown'
}
