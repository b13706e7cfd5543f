/** /internal/v1/access and /feed: the API of gateways, behind the gateway token. */
import { AccessQuestionSchema, LIMITS, parserOf } from '@sandglass/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { requireToken } from '../api/authentication.ts'
import type { Context } from '../context.ts'
import { answerAccess } from './access.ts'
import { serveFeed } from './feed.ts'

const questions = parserOf(AccessQuestionSchema)

/** @param streams what is open until it closes; ended when the process ends */
export function internalGatewayRoutes(app: FastifyInstance, context: Context, streams: Set<() => void>): void {
  const options = { onRequest: async (request: FastifyRequest) => requireToken(request, context.config.gatewayTokenSha256) }

  app.post('/internal/v1/access', options, async (request, reply) => reply.send(await answerAccess(context, questions.parse(request.body))))

  app.get('/internal/v1/feed', options, async (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
    const feed = serveFeed(context.bus, reply.raw, LIMITS.feedHeartbeatMs)
    streams.add(feed.close)
    await feed.done
    streams.delete(feed.close)
  })
}
