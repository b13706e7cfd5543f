/** /v1/api-keys */
import type { FastifyInstance } from 'fastify'
import { createApiKey, revokeKey, tenantScope } from '../services/api-keys.ts'
import { listApiKeys } from '../store/api-keys.ts'
import { idempotencyKeyOf } from './idempotency-key.ts'
import { pageLimit, pageOf, parseCursor } from './page.ts'
import { type RouteContext, route } from './route.ts'
import { apiKeyView } from './views.ts'

export function apiKeyRoutes(app: FastifyInstance, context: RouteContext): void {
  route(app, context, 'createApiKey', async ({ principal, body, request, reply }) => {
    const made = await createApiKey(context, { principal, body, idempotencyKey: idempotencyKeyOf(request), requestId: request.id })
    if (made.replayed) void reply.header('idempotency-replayed', 'true')
    void reply.code(201).send({ ...apiKeyView(made.row), key: made.secret })
  })

  route(app, context, 'listApiKeys', async ({ principal, query, reply }) => {
    const limit = pageLimit(query.limit)
    void reply.send(pageOf(await listApiKeys(context.db, tenantScope(principal), parseCursor(query.cursor), limit + 1), limit, apiKeyView))
  })

  route(app, context, 'revokeApiKey', async ({ principal, subject, request, reply }) => {
    await revokeKey(context, { principal, id: subject, requestId: request.id })
    void reply.code(204).send()
  })
}
