/** Answers preflights and marks answers for pages of the allowed origins. On the raw response: most answers here are written past Fastify. */
import { corsAnswer } from '@sandglass/contract/cors'
import type { FastifyInstance } from 'fastify'

export function allowOrigins(app: FastifyInstance, allowed: ReadonlySet<string>): void {
  if (allowed.size === 0) return
  app.addHook('onRequest', async (request, reply) => {
    const asksForMethod = request.headers['access-control-request-method'] !== undefined
    const { headers, isPreflight } = corsAnswer({ method: request.method, origin: request.headers.origin, asksForMethod }, allowed)
    for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value)
    if (isPreflight) await reply.code(204).send()
  })
}
