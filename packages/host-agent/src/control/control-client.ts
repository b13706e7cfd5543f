/** The four requests that a host sends to its control plane. It dials out; nothing dials it. */
import type { IncomingMessage } from 'node:http'
import {
  CodedError,
  type HostOrder,
  HostOrderSchema,
  type HostReport,
  type HostReportsAnswer,
  HostReportsAnswerSchema,
  LIMITS,
  type Parser,
  parseProblem,
  parserOf,
  type RegisteredHost,
  RegisteredHostSchema,
  type RegisterHost,
  RenewedLeaseSchema,
} from '@sandglass/contract'
import { httpDialler } from './http-dialler.ts'
import { splitLines } from './line-splitter.ts'

const registered = parserOf(RegisteredHostSchema)
const renewed = parserOf(RenewedLeaseSchema)
const answered = parserOf(HostReportsAnswerSchema)
const order = parserOf(HostOrderSchema)

export type ControlClient = {
  /** @throws CodedError `stale_epoch` and whatever the control plane says; `unavailable` when it cannot be reached */
  register(body: RegisterHost, signal: AbortSignal): Promise<RegisteredHost>
  renew(hostId: string, body: { epoch: number; boot_id: string }, signal: AbortSignal): Promise<{ epoch: number; seq: number }>
  report(hostId: string, body: { epoch: number; items: HostReport[] }, signal: AbortSignal): Promise<HostReportsAnswer>
  /** Ends when the control plane ends it. */
  watch(hostId: string, epoch: number, signal: AbortSignal): AsyncGenerator<HostOrder>
}

/** @param token read for each request, so that a rotated one is taken up */
export function controlClient(baseUrl: string, token: () => Promise<string>): ControlClient {
  const hosts = `${baseUrl.replace(/\/$/, '')}/internal/v1/hosts`
  const dial = httpDialler()

  async function send(path: string, request: { headers: Readonly<Record<string, string>>; body?: string; signal: AbortSignal }): Promise<IncomingMessage> {
    const headers = { ...request.headers, authorization: `Bearer ${await token()}` }
    let response: IncomingMessage
    try {
      response = await dial(new URL(`${hosts}${path}`), { ...request, headers })
    } catch (cause) {
      throw new CodedError('unavailable', `The control plane cannot be reached: ${causeOf(cause)}`, { cause })
    }
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    const problem = parseProblem(await bodyOf(response).catch(() => undefined))
    throw new CodedError(problem?.code ?? 'unavailable', problem?.detail ?? `The control plane answered ${status}.`)
  }

  async function post<T>(path: string, body: unknown, parser: Parser<T>, signal: AbortSignal): Promise<T> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(LIMITS.hostControlRequestMs)])
    const response = await send(path, { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal: bounded })
    return parser.parse(await bodyOf(response))
  }

  return {
    register: (body, signal) => post('/register', body, registered, signal),
    renew: (hostId, body, signal) => post(`/${hostId}/renew`, body, renewed, signal),
    report: (hostId, body, signal) => post(`/${hostId}/reports`, body, answered, signal),
    async *watch(hostId, epoch, signal) {
      const response = await send(`/${hostId}/watch?epoch=${epoch}`, { headers: { accept: 'application/x-ndjson' }, signal })
      for await (const line of splitLines(response)) if (line !== '') yield order.parse(JSON.parse(line))
    },
  }
}

async function bodyOf(response: AsyncIterable<Uint8Array>): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response) {
    size += chunk.byteLength
    if (size > LIMITS.hostBodyBytes) throw new CodedError('body_too_large', 'The control plane’s answer is too large.')
    chunks.push(chunk)
  }
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}
