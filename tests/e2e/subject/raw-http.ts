/** HTTP as it is on the wire: nothing is normalised, retried or parsed, so that a test can send what a client library would not. */
import http from 'node:http'
import { parseProblem } from '@sandglass/contract'
import { text } from './bytes.ts'
import { Coded } from './coded.ts'

export type RawRequest = {
  readonly method: string
  /** Sent as it is, query and all. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string | AsyncIterable<Uint8Array>
  readonly timeoutMs?: number
}

export type RawAnswer = { readonly status: number; readonly headers: http.IncomingHttpHeaders; readonly body: Buffer }

const DEFAULT_TIMEOUT_MS = 60_000

async function pump(request: http.ClientRequest, body: RawRequest['body']): Promise<void> {
  if (body === undefined) return void request.end()
  if (typeof body === 'string' || body instanceof Uint8Array) return void request.end(body)
  for await (const chunk of body) {
    if (request.destroyed) return
    if (!request.write(chunk)) await new Promise<void>((resolve) => request.once('drain', resolve).once('close', resolve))
  }
  request.end()
}

/** Sends one request on a connection of its own; its answer as it begins, to be read by the caller. */
export function startRaw(baseUrl: string, { method, path, headers, body, timeoutMs = DEFAULT_TIMEOUT_MS }: RawRequest): Promise<http.IncomingMessage> {
  const { hostname, port } = new URL(baseUrl)
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, method, path, headers: { ...headers }, agent: false, signal: AbortSignal.timeout(timeoutMs) })
    request.once('response', resolve)
    request.on('error', reject)
    pump(request, body).catch(reject)
  })
}

/** Sends one request on a connection of its own. */
export function rawHttp(baseUrl: string, { method, path, headers, body, timeoutMs = DEFAULT_TIMEOUT_MS }: RawRequest): Promise<RawAnswer> {
  const { hostname, port } = new URL(baseUrl)
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, method, path, headers: { ...headers }, agent: false, signal: AbortSignal.timeout(timeoutMs) })
    let answered = false
    request.once('response', (response) => {
      answered = true
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }))
    })
    // A server may answer and close before a body was sent whole; its answer counts.
    request.on('error', (error) => {
      if (!answered) reject(error)
    })
    pump(request, body).catch(reject)
  })
}

export function jsonBody(answer: RawAnswer): unknown {
  return answer.body.byteLength === 0 ? undefined : JSON.parse(text(answer.body))
}

/** @throws Coded with the code of the problem that came instead of success */
export function succeeded(answer: RawAnswer): RawAnswer {
  if (answer.status < 300) return answer
  const problem = parseProblem(jsonBody(answer))
  if (problem === undefined) throw new Error(`HTTP ${answer.status} without a problem: ${text(answer.body).slice(0, 200)}`)
  throw new Coded(problem.code)
}

const UNRESERVED = /[A-Za-z0-9._~/-]/

/** Percent-encodes bytes for a query value. */
export function percentEncode(bytes: Uint8Array | string): string {
  let encoded = ''
  for (const byte of typeof bytes === 'string' ? Buffer.from(bytes, 'utf8') : bytes) {
    const character = String.fromCharCode(byte)
    encoded += byte < 0x80 && UNRESERVED.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  }
  return encoded
}
