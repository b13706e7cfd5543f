/** The HTTP server: hooks, errors, and one plugin per resource. */
import type { Socket } from 'node:net'
import { CodedError, LIMITS, newRequestId, PROBLEM_MEDIA_TYPE, parseRequestId, problemOf, refuseRoute } from '@sandglass/contract'
import type { OpenSpan } from '@sandglass/telemetry'
import Fastify, { type FastifyInstance, type FastifyRequest, type FastifyServerFactory, LogController } from 'fastify'
import type { Config } from '../config.ts'
import type { ControlPlaneMetrics } from '../metrics/catalogue.ts'
import type { World } from '../world.ts'
import { allowOrigins } from './allow-origins.ts'
import { acceptJsonOnly } from './json-body.ts'
import { sendError } from './problems.ts'
import './request-state.ts'

const REQUEST_TIMEOUT_MS = 30_000
const KEEP_ALIVE_MS = 75_000

/** @param serverFactory where it is not to be plain HTTP @returns a server with no routes yet; it gives the logger to everyone else */
export function makeServer(config: Config, world: World, serverFactory?: FastifyServerFactory): FastifyInstance {
  const app = Fastify({
    ...(serverFactory === undefined ? {} : { serverFactory }),
    bodyLimit: LIMITS.apiBodyBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: { maxHeaderSize: LIMITS.requestHeadBytes },
    // A path variable that is no id or name finds nothing (route.ts); the router sets no bound of its own.
    routerOptions: { maxParamLength: LIMITS.requestHeadBytes },
    // Errors before any hook: a path that is not percent-encoded right.
    frameworkErrors: (error, request, reply) => {
      void reply.header('sandglass-request-id', request.id)
      sendError(error, request, reply)
    },
    clientErrorHandler: refuseMalformed,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: (request) => {
      const given = request.headers['sandglass-request-id']
      return (typeof given === 'string' ? parseRequestId(given) : undefined) ?? newRequestId(world.random)
    },
    logger: {
      level: config.logLevel,
      base: { role: 'control-plane' },
      stream: world.logStream,
      // Of an error only this: what a driver adds to it can hold the values of a row.
      serializers: { err: errorLine },
      redact: { paths: ['req.headers', 'headers.authorization', '*.authorization', '*.env', '*.key', '*.secret'], remove: true },
    },
  })
  acceptJsonOnly(app)
  allowOrigins(app, config.allowedOrigins)
  app.decorateRequest('principal', null)
  app.decorateRequest('beganMs', 0)
  app.decorateRequest('place', undefined)
  app.decorateRequest('span', undefined)
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply))
  app.setNotFoundHandler((request, reply) => {
    const { error, allow } = refuseRoute('control-plane', request.method, request.url.split('?')[0] ?? request.url)
    if (allow.length > 0) void reply.header('allow', allow.join(', '))
    sendError(error, request, reply)
  })
  return app
}

/** One log line, one sample and one span per answered request. Never its body, query or headers. */
export function observeRequests(app: FastifyInstance, world: World, metrics: ControlPlaneMetrics): void {
  app.addHook('onRequest', async (request, reply) => {
    request.beganMs = world.monotonicMs()
    void reply.header('sandglass-request-id', request.id)
    if (!isRoutine(request.routeOptions.url)) request.span = spanOf(request, world)
  })
  app.addHook('onResponse', async (request, reply) => {
    const durationMs = world.monotonicMs() - request.beganMs
    const route = request.routeOptions.url ?? 'none'
    const labels = { http_request_method: request.method, http_route: route, http_response_status_code: String(reply.statusCode) }
    if (!isOperators(route)) metrics.observeSeconds('http_server_request_duration_seconds', labels, durationMs / 1_000)
    const { principal, span } = request
    span?.set({ 'http.response.status_code': reply.statusCode })
    span?.end(reply.statusCode >= 500 ? { error: String(reply.statusCode) } : {})
    request.log[isRoutine(request.routeOptions.url) ? 'debug' : 'info'](
      {
        method: request.method,
        route,
        status: reply.statusCode,
        duration_ms: Math.round(durationMs * 10) / 10,
        ...(principal === null ? {} : { tenant: principal.tenantId, api_key_id: principal.apiKeyId }),
      },
      'request',
    )
  })
}

/** Names and attributes: https://opentelemetry.io/docs/specs/semconv/http/http-spans/. */
function spanOf(request: FastifyRequest, { tracing }: World): OpenSpan {
  const route = request.routeOptions.url ?? 'none'
  const { traceparent } = request.headers
  return tracing.open(`${request.method} ${route}`, {
    kind: 'server',
    parent: typeof traceparent === 'string' ? traceparent : undefined,
    attributes: { 'http.request.method': request.method, 'http.route': route, 'sandglass.request_id': request.id },
  })
}

/** What the HTTP parser cannot read has no request yet, so it has no id either. */
function refuseMalformed(error: Error, socket: Socket): void {
  if (!socket.writable || ('code' in error && error.code === 'ECONNRESET')) {
    socket.destroy()
    return
  }
  const problem = problemOf(malformed(error))
  const body = JSON.stringify(problem)
  socket.end(
    `HTTP/1.1 ${problem.status} ${problem.title}\r\ncontent-type: ${PROBLEM_MEDIA_TYPE}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

/** Asked every second by whoever supervises. */
const isOperators = (url: string): boolean => /^\/(healthz|readyz|metrics)$/.test(url)

function malformed(error: Error): CodedError {
  if (!('code' in error) || error.code !== 'HPE_HEADER_OVERFLOW') return new CodedError('invalid_request', 'The request is not HTTP that can be read.')
  const limit = { name: 'requestHeadBytes', value: LIMITS.requestHeadBytes }
  return new CodedError('limit_exceeded', `The request line and its headers have more than ${limit.value} bytes.`, { limit })
}

/** Asked every few seconds, by machines. */
const isRoutine = (url: string | undefined): boolean => url !== undefined && (isOperators(url) || url === '/internal/v1/hosts/:id/renew')

function errorLine(error: unknown): { type: string; message: string; stack: string; code?: string; cause?: string } {
  if (!(error instanceof Error)) return { type: 'unknown', message: typeof error === 'string' ? error : 'not an error was thrown', stack: '' }
  return {
    type: error.name,
    message: error.message,
    stack: error.stack ?? '',
    ...('code' in error && typeof error.code === 'string' ? { code: error.code } : {}),
    ...(error.cause instanceof Error ? { cause: error.cause.message } : {}),
  }
}
