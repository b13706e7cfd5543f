/** The HTTP server: timeouts and limits, request ids, access log, the endpoints for operators, and the page of error codes. */
import type { Socket } from 'node:net'
import { CodedError, ERRORS_PATH, LIMITS, newRequestId, refuseRoute } from '@sandglass/contract'
import { errorsPage } from '@sandglass/contract/errors-page'
import { PAGE_HEADERS } from '@sandglass/contract/html'
import type { OpenSpan } from '@sandglass/telemetry'
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { codedError, problemBody, problemHeaders, refuseUpgrade } from '../problems/send-problem.ts'
import type { World } from '../world.ts'
import { openRequestSpan } from './request-span.ts'

const HEADERS_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 65_000
const TCP_KEEP_ALIVE_MS = 30_000
const PARAM_CHARACTERS = 'key:'.length + LIMITS.processKeyCharacters

const OPERATOR_PATHS: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics'])

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined for what machines ask every second. */
    span: OpenSpan | undefined
  }
}

export type Health = { readonly isReady: () => boolean }

function placeOf(request: FastifyRequest) {
  return { instance: request.url.split('?')[0] ?? '', requestId: request.id }
}

function answerProblem(request: FastifyRequest, reply: FastifyReply, error: CodedError): void {
  reply
    .code(error.status)
    .headers(problemHeaders(error, placeOf(request)))
    .send(Buffer.from(problemBody(error, placeOf(request))))
}

/** What Fastify itself refuses: broken URLs, headers that it cannot use. */
function frameworkError(error: FastifyError): CodedError {
  const status = error.statusCode ?? 500
  if (status === 415) return new CodedError('unsupported_media_type')
  return status < 500 ? new CodedError('invalid_request', 'The request line or its headers are malformed.') : codedError(error)
}

/** Bytes that are not HTTP, a head that is too large or too slow. */
function refuseUnreadable(cause: Error, socket: Socket, world: World): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  refuseUpgrade(socket, unreadable(cause), { instance: '', requestId: newRequestId(world.random) })
}

function unreadable(cause: Error): CodedError {
  if (!('code' in cause) || cause.code !== 'HPE_HEADER_OVERFLOW') return new CodedError('invalid_request', 'The request is not HTTP, or too slow.')
  const limit = { name: 'requestHeadBytes', value: LIMITS.requestHeadBytes }
  return new CodedError('limit_exceeded', `The request line and its headers have more than ${limit.value} bytes.`, { limit })
}

export function buildApp(world: World, health: Health): FastifyInstance {
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    genReqId: () => newRequestId(world.random),
    requestIdHeader: false,
    // Uploads and commands may take hours; the time for the head of a request is bounded below.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: false,
    routerOptions: { maxParamLength: PARAM_CHARACTERS, querystringParser: () => ({}) },
    http: {
      maxHeaderSize: LIMITS.requestHeadBytes,
      headersTimeout: HEADERS_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      noDelay: true,
      // Clients that offer HTTP/2 by upgrade get HTTP/1.1, as if they had not.
      shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === 'websocket',
    },
    clientErrorHandler: (error, socket) => refuseUnreadable(error, socket, world),
    frameworkErrors: (error, request, reply) => answerProblem(request, reply, frameworkError(error)),
  })
  app.server.maxConnections = LIMITS.gatewayConnections
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, body, done) => done(null, body))
  app.setErrorHandler((error: FastifyError, request, reply) => answerProblem(request, reply, frameworkError(error)))
  app.setNotFoundHandler((request, reply) => {
    const { error, allow } = refuseRoute('gateway', request.method, request.url.split('?')[0] ?? '')
    if (allow.length > 0) reply.header('allow', allow.join(', '))
    answerProblem(request, reply, error)
  })
  traceRequests(app, world)
  logRequests(app, world)
  registerHealth(app, world, health)
  registerDocuments(app)
  return app
}

/** Names and attributes: https://opentelemetry.io/docs/specs/semconv/http/http-spans/. */
function traceRequests(app: FastifyInstance, { tracing }: World): void {
  app.decorateRequest('span', undefined)
  app.addHook('onRequest', async (request) => {
    const route = request.routeOptions.url ?? 'none'
    if (!OPERATOR_PATHS.has(route)) request.span = openRequestSpan(tracing, request.raw, route, request.id)
  })
  app.addHook('onResponse', async ({ span }, { raw }) => {
    span?.set({ 'http.response.status_code': raw.statusCode })
    span?.end(raw.statusCode >= 500 || !raw.writableFinished ? { error: raw.writableFinished ? String(raw.statusCode) : 'incomplete' } : {})
  })
}

function logRequests(app: FastifyInstance, world: World): void {
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none'
    // Asked every second by whoever supervises.
    if (OPERATOR_PATHS.has(route)) return
    const status = reply.raw.statusCode
    const isWhole = reply.raw.writableFinished
    const labels = { http_request_method: request.method, http_route: route, http_response_status_code: String(status) }
    world.metrics.observeSeconds('http_server_request_duration_seconds', labels, reply.elapsedTime / 1_000)
    if (!isWhole) world.metrics.count('sandglass_gateway_answers_cut_total')
    world.log(status >= 500 ? 'warn' : 'info', 'request', {
      request_id: request.id,
      method: request.method,
      route,
      sandbox: sandboxOf(request),
      status,
      complete: isWhole,
      duration_ms: Math.round(reply.elapsedTime),
    })
  })
}

/** Only if it looks like an id: what else a client puts there is its own business. */
function sandboxOf(request: FastifyRequest): string | undefined {
  return /\/sandboxes\/(sb[a-z0-9]{18})(?:\/|$)/.exec(request.url.split('?')[0] ?? '')?.[1]
}

function registerHealth(app: FastifyInstance, world: World, health: Health): void {
  app.get('/healthz', async (_request, reply) => reply.send({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => (health.isReady() ? reply.send({ status: 'ready' }) : reply.code(503).send({ status: 'not_ready' })))
  app.get('/metrics', async (_request, reply) => reply.type('text/plain; version=0.0.4').send(world.metrics.text()))
}

/** What the `type` of a problem leads to, for anyone who got one. */
function registerDocuments(app: FastifyInstance): void {
  const page = errorsPage()
  app.get(ERRORS_PATH, async (_request, reply) => reply.headers(PAGE_HEADERS).send(page))
}
