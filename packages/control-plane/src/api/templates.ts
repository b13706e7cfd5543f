/** /v1/templates */
import type { FastifyInstance } from 'fastify'
import { templateNotFound } from '../services/not-found.ts'
import { findTemplate, listTemplates } from '../store/templates.ts'
import { pageLimit } from './page.ts'
import { type RouteContext, route } from './route.ts'
import { templateView } from './views.ts'

export function templateRoutes(app: FastifyInstance, context: RouteContext): void {
  // Names are unique and in order, so the last one is the cursor.
  route(app, context, 'listTemplates', async ({ query, reply }) => {
    const limit = pageLimit(query.limit)
    const rows = await listTemplates(context.db, query.cursor, limit + 1)
    const items = rows.slice(0, limit).map(templateView)
    void reply.send({ items, next_cursor: rows.length > limit ? (items.at(-1)?.name ?? null) : null })
  })

  route(app, context, 'getTemplate', async ({ subject, reply }) => {
    const [name = subject, digest] = subject.split('@')
    const row = await findTemplate(context.db, name, digest ?? null)
    if (row === undefined) throw await templateNotFound(context.db, subject)
    void reply.send(templateView(row))
  })
}
