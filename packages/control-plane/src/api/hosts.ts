/** /v1/hosts */
import { CodedError } from '@sandglass/contract'
import type { FastifyInstance } from 'fastify'
import { listHosts } from '../store/hosts.ts'
import { pageLimit, pageOf, parseCursor } from './page.ts'
import { type RouteContext, route } from './route.ts'
import { hostView } from './views.ts'

export function hostRoutes(app: FastifyInstance, context: RouteContext): void {
  const { leaseMs } = context.config.timing

  route(app, context, 'listHosts', async ({ query, reply }) => {
    const limit = pageLimit(query.limit)
    const rows = await listHosts(context.db, leaseMs, { after: parseCursor(query.cursor), limit: limit + 1 })
    void reply.send(pageOf(rows, limit, hostView))
  })

  route(app, context, 'getHost', async ({ subject, reply }) => {
    const [row] = await listHosts(context.db, leaseMs, { idOrName: subject, limit: 1 })
    if (row === undefined) throw new CodedError('host_not_found')
    void reply.send(hostView(row))
  })
}
