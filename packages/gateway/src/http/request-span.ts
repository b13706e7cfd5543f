/** The span of one request or one WebSocket, in the trace of the client that sent it. */
import type { IncomingMessage } from 'node:http'
import type { OpenSpan, Tracing } from '@sandglass/telemetry'

/** @param route its template, never the path that a client wrote */
export function openRequestSpan(tracing: Tracing, request: IncomingMessage, route: string, requestId: string): OpenSpan {
  const method = request.method ?? 'GET'
  const { traceparent } = request.headers
  return tracing.open(`${method} ${route}`, {
    kind: 'server',
    parent: typeof traceparent === 'string' ? traceparent : undefined,
    attributes: { 'http.request.method': method, 'http.route': route, 'sandglass.request_id': requestId },
  })
}
