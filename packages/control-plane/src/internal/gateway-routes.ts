/** /internal/v1/access and /feed: the API of gateways. */
import { AccessQuestionSchema, LIMITS, parserOf } from '@sandglass/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../context.ts'
import type { PeerGate } from '../identities/peer-gate.ts'
import { answerAccess } from './access.ts'
import { serveFeed } from './feed.ts'

const questions = parserOf(AccessQuestionSchema)

/** @param streams what is open until it closes; ended when the process ends */
export function internalGatewayRoutes(app: FastifyInstance, context: Context, gate: PeerGate, streams: Set<() => void>): void {
  const options = {
    onRequest: async (request: FastifyRequest): Promise<void> => {
      await gate.enter(request, 'gateway')
    },
  }

  app.post('/internal/v1/access', options, async (request, reply) => reply.send(await answerAccess(context, questions.parse(request.body))))

  app.get('/internal/v1/feed', options, async (request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
    const feed = serveFeed(context.bus, reply.raw, LIMITS.feedHeartbeatMs)
    const stopWatching = gate.watchOver(request, feed.close)
    streams.add(feed.close)
    await feed.done
    stopWatching()
    streams.delete(feed.close)
  })
}
