/** /v1/sandboxes */
import type { Sandbox } from '@sandglass/contract'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { extendSandbox, updateSandbox } from '../services/change-sandbox.ts'
import { type CreateIds, createSandbox, newCreateIds } from '../services/create-sandbox.ts'
import { deleteSandbox } from '../services/delete-sandbox.ts'
import { sandboxNotFound } from '../services/not-found.ts'
import { awaitOperation, endOf } from '../services/operation-wait.ts'
import { runSandbox } from '../services/run-sandbox.ts'
import { findSandbox, listSandboxes, type SandboxRow } from '../store/sandboxes.ts'
import { idempotencyKeyOf } from './idempotency-key.ts'
import { pageLimit, pageOf, parseCursor } from './page.ts'
import { preferredWaitMs, waitSignal } from './prefer.ts'
import { sendProblem } from './problems.ts'
import { pairFilter } from './query.ts'
import { type Call, type RouteContext, route } from './route.ts'
import { operationView, sandboxView } from './views.ts'

export function sandboxRoutes(app: FastifyInstance, context: RouteContext): void {
  const view = (row: SandboxRow) => viewOf(context, row)

  route(app, context, 'createSandbox', (call) => create(context, call))
  route(app, context, 'deleteSandbox', (call) => remove(context, call))
  route(app, context, 'stopSandbox', (call) => run(context, 'stop', call))
  route(app, context, 'startSandbox', (call) => run(context, 'start', call))

  route(app, context, 'listSandboxes', async ({ principal, query, reply }) => {
    const limit = pageLimit(query.limit)
    const filter = {
      includeEnded: query.include_ended ?? false,
      status: query.status,
      template: query.template,
      name: query.name,
      metadata: pairFilter('metadata', query.metadata),
    }
    const rows = await listSandboxes(context.db, principal.tenantId, filter, parseCursor(query.cursor), limit + 1)
    void reply.send(pageOf(rows, limit, view))
  })

  route(app, context, 'getSandbox', async ({ principal, subject, reply }) => {
    void reply.send(view(await existing(context, principal.tenantId, subject)))
  })

  route(app, context, 'updateSandbox', async ({ principal, subject, body, request, reply }) => {
    void reply.send(view(await updateSandbox(context, { principal, idOrName: subject, change: body, requestId: request.id })))
  })

  route(app, context, 'extendSandbox', async ({ principal, subject, body, request, reply }) => {
    void reply.send(view(await extendSandbox(context, { principal, idOrName: subject, ttlSeconds: body.ttl_seconds, requestId: request.id })))
  })
}

async function create(context: RouteContext, { principal, body, request, reply }: Call<'createSandbox'>): Promise<void> {
  const waitMs = preferredWaitMs(request, reply)
  const ids = newCreateIds(context)
  // Before the create, so that its end is not missed however soon it comes.
  const expected = waitMs === undefined || waitMs === 0 ? undefined : context.waiters.expect(ids.operationId, waitMs)
  try {
    const made = await createSandbox(context, {
      principal,
      body,
      idempotencyKey: idempotencyKeyOf(request),
      requestId: request.id,
      traceparent: request.span?.traceparent,
      ids,
    })
    if (made.replayed) void reply.header('idempotency-replayed', 'true')
    const ready = made.replayed || expected === undefined ? undefined : await endOf(expected, waitSignal(reply))
    if (ready === undefined) await answerAsItIs(context, made, made.replayed ? waitMs : undefined, { principal, request, reply })
    else answerSandbox(context, reply, ready, made.operationId, true)
  } finally {
    expected?.cancel()
  }
}

/**
 * A repeat, a create that nobody waits for, that failed or takes long, or one that another process saw through: what it has come to is read. A start since
 * has undone what ended the create; one that is on its way is 202 again, whatever it has been.
 */
async function answerAsItIs(
  context: RouteContext,
  made: CreateIds,
  waitMs: number | undefined,
  { principal, request, reply }: Pick<Call<'createSandbox'>, 'principal' | 'request' | 'reply'>,
): Promise<void> {
  const operation = await awaitOperation(context, principal.tenantId, made.operationId, waitMs, waitSignal(reply))
  const row = await existing(context, principal.tenantId, made.sandboxId)
  const wanted = row.desired === 'running'
  if (!wanted && operation?.status === 'failed' && operation.problem !== null) {
    sendProblem(operation.problem, request, reply)
    return
  }
  answerSandbox(context, reply, row, row.operation_id, wanted ? row.observed === 'ready' : operation?.status === 'succeeded')
}

function answerSandbox(context: RouteContext, reply: FastifyReply, row: SandboxRow, operationId: string, done: boolean): void {
  void reply
    .code(done ? 201 : 202)
    .header('location', done ? `/v1/sandboxes/${row.id}` : `/v1/operations/${operationId}`)
    .send(viewOf(context, row))
}

async function remove(context: RouteContext, { principal, subject, request, reply }: Call<'deleteSandbox'>): Promise<void> {
  const waitMs = preferredWaitMs(request, reply)
  const deleted = await deleteSandbox(context, { principal, idOrName: subject, requestId: request.id })
  const operation = waitMs === undefined ? deleted : ((await awaitOperation(context, principal.tenantId, deleted.id, waitMs, waitSignal(reply))) ?? deleted)
  if (waitMs !== undefined && operation.status === 'succeeded') {
    void reply.code(204).send()
    return
  }
  void reply.code(202).header('location', `/v1/operations/${operation.id}`).send(operationView(operation))
}

/** The sandbox as it is now: 200 when what was asked for is so, 202 while it is on its way. */
async function run(context: RouteContext, want: 'start' | 'stop', { principal, subject, request, reply }: Call<'startSandbox' | 'stopSandbox'>): Promise<void> {
  const waitMs = preferredWaitMs(request, reply)
  const { tenantId } = principal
  const asked = await runSandbox(context, {
    want,
    principal,
    idOrName: subject,
    idempotencyKey: idempotencyKeyOf(request),
    requestId: request.id,
    traceparent: request.span?.traceparent,
  })
  if (asked.replayed) void reply.header('idempotency-replayed', 'true')
  const operation = asked.operationId === undefined ? undefined : await awaitOperation(context, tenantId, asked.operationId, waitMs, waitSignal(reply))
  if (operation?.status === 'failed' && operation.problem !== null) {
    sendProblem(operation.problem, request, reply)
    return
  }
  if (operation?.status === 'pending') void reply.code(202).header('location', `/v1/operations/${operation.id}`)
  void reply.send(viewOf(context, await existing(context, tenantId, asked.sandboxId)))
}

const viewOf = ({ config, world }: RouteContext, row: SandboxRow): Sandbox => sandboxView(row, config.gatewayUrls, world.wallMs())

async function existing(context: RouteContext, tenantId: string, idOrName: string): Promise<SandboxRow> {
  const row = await findSandbox(context.db, tenantId, idOrName)
  if (row === undefined) throw sandboxNotFound(idOrName)
  return row
}
