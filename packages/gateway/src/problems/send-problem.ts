/** Errors as problem documents, on answers of Fastify, on raw answers and on sockets before an upgrade. */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { CodedError, ERRORS, PROBLEM_MEDIA_TYPE, problemOf } from '@sandglass/contract'

export const REQUEST_ID_HEADER = 'sandglass-request-id'

const RETRY_AFTER_SECONDS = 1

export type ProblemPlace = { readonly instance: string; readonly requestId: string }

/** Anything thrown becomes an error of the registry; what is not one is `internal` and says nothing of its cause. */
export function codedError(error: unknown): CodedError {
  return error instanceof CodedError ? error : new CodedError('internal', undefined, { cause: error })
}

export function problemHeaders(error: CodedError, place: ProblemPlace): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': PROBLEM_MEDIA_TYPE, 'cache-control': 'no-store', [REQUEST_ID_HEADER]: place.requestId }
  if (error.status === 429 || error.status === 503) headers['retry-after'] = String(error.context.retryAfterSeconds ?? RETRY_AFTER_SECONDS)
  if (error.status === 401) headers['www-authenticate'] = 'Bearer'
  return headers
}

export function problemBody(error: CodedError, place: ProblemPlace): string {
  return JSON.stringify(problemOf(error, place))
}

/** On an answer whose headers are not sent yet. */
export function sendProblem(response: ServerResponse, error: CodedError, place: ProblemPlace): void {
  const body = problemBody(error, place)
  response.writeHead(error.status, { ...problemHeaders(error, place), 'content-length': Buffer.byteLength(body) })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}

/** Refuses an upgrade: an HTTP answer on the bare socket, then its end. */
export function refuseUpgrade(socket: Duplex, error: CodedError, place: ProblemPlace): void {
  const body = problemBody(error, place)
  const headers = { ...problemHeaders(error, place), 'content-length': String(Buffer.byteLength(body)), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${error.status} ${ERRORS[error.code].title}\r\n${lines.join('')}\r\n${body}`)
}
