/** /v1/join-tokens */
import type { FastifyInstance } from 'fastify'
import { createJoinToken, revokeToken } from '../services/join-tokens.ts'
import { listJoinTokens } from '../store/join-tokens.ts'
import { pageLimit, pageOf, parseCursor } from './page.ts'
import { type RouteContext, route } from './route.ts'
import { joinTokenView } from './views.ts'

export function joinTokenRoutes(app: FastifyInstance, context: RouteContext): void {
  route(app, context, 'createJoinToken', async ({ principal, body, request, reply }) => {
    const { row, token } = await createJoinToken(context, { principal, body, requestId: request.id })
    void reply.code(201).send({ ...joinTokenView(row), token, join_url: context.joinUrl() })
  })

  route(app, context, 'listJoinTokens', async ({ query, reply }) => {
    const limit = pageLimit(query.limit)
    void reply.send(pageOf(await listJoinTokens(context.db, parseCursor(query.cursor), limit + 1), limit, joinTokenView))
  })

  route(app, context, 'revokeJoinToken', async ({ principal, subject, request, reply }) => {
    await revokeToken(context, { principal, id: subject, requestId: request.id })
    void reply.code(204).send()
  })
}
