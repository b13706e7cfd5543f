/** /v1/hosts */
import type { Host } from '@sandglass/contract'
import type { FastifyInstance } from 'fastify'
import { ambiguousHost, hostNotFound, NAMED_HOSTS } from '../services/host-refusals.ts'
import { cordonHost, drainHost, type HostRequest, labelHost, removeHost, uncordonHost } from '../services/operate-hosts.ts'
import { listHosts } from '../store/hosts.ts'
import { pageLimit, pageOf, parseCursor } from './page.ts'
import { pairFilter } from './query.ts'
import { type Call, type ControlPlaneRoute, type RouteContext, route } from './route.ts'
import { hostView } from './views.ts'

export function hostRoutes(app: FastifyInstance, context: RouteContext): void {
  const { timing } = context.config
  const { leaseMs } = timing

  /** As a change has left it. */
  const told = async (hostId: string): Promise<Host> => {
    const [row] = await listHosts(context.db, leaseMs, { idOrName: hostId, limit: 1 })
    // Another operator's removal came behind the change.
    if (row?.id !== hostId) throw hostNotFound(hostId)
    return hostView(row, timing)
  }

  route(app, context, 'listHosts', async ({ query, reply }) => {
    const limit = pageLimit(query.limit)
    const filter = { label: pairFilter('label', query.label), status: query.status }
    const rows = await listHosts(context.db, leaseMs, { ...filter, after: parseCursor(query.cursor), limit: limit + 1 })
    void reply.send(pageOf(rows, limit, (row) => hostView(row, timing)))
  })

  route(app, context, 'getHost', async ({ subject, reply }) => {
    const rows = await listHosts(context.db, leaseMs, { idOrName: subject, limit: NAMED_HOSTS })
    const row = rows.find(({ id }) => id === subject) ?? rows[0]
    if (row === undefined) throw hostNotFound(subject)
    if (rows.length > 1 && row.id !== subject) throw ambiguousHost(subject, rows)
    void reply.send(hostView(row, timing))
  })

  route(app, context, 'updateHost', async (call) => {
    void call.reply.send(await told(await labelHost(context, { ...requestOf(call), labels: call.body.labels })))
  })

  route(app, context, 'cordonHost', async (call) => {
    void call.reply.send(await told(await cordonHost(context, requestOf(call))))
  })

  route(app, context, 'uncordonHost', async (call) => {
    void call.reply.send(await told(await uncordonHost(context, requestOf(call))))
  })

  route(app, context, 'drainHost', async (call) => {
    const id = await drainHost(context, { ...requestOf(call), deadlineSeconds: call.body.deadline_seconds })
    void call.reply.code(202).send(await told(id))
  })

  route(app, context, 'removeHost', async (call) => {
    await removeHost(context, requestOf(call))
    void call.reply.code(204).send()
  })
}

function requestOf<Name extends ControlPlaneRoute>({ principal, subject, request }: Call<Name>): HostRequest {
  return { principal, idOrName: subject, requestId: request.id }
}
