/**
 * The four requests that a host sends to its control plane, to whichever replica answers. It dials out; nothing dials it.
 *
 * Each is safe to reach several replicas: a report is a fact that stays one, a renewal only adds to what the host is known to hold, and a repeated
 * registration is the same one. A watch is of one replica; when a request has to go elsewhere the watch follows it, since who does not answer does not
 * send orders either.
 */
import type { IncomingMessage } from 'node:http'
import {
  askReplicas,
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
  type Replicas,
} from '@sandglass/contract'
import { controlPlaneAgent, type OwnIdentity, secureUrl } from '@sandglass/identity'
import { httpDialler } from './http-dialler.ts'
import { splitLines } from './line-splitter.ts'

const registered = parserOf(RegisteredHostSchema)
const renewed = parserOf(RenewedLeaseSchema)
const answered = parserOf(HostReportsAnswerSchema)
const order = parserOf(HostOrderSchema)

/** How long one replica may take before the next is asked as well. A renewal is one row; a report may be a thousand items, a registration a release. */
const PATIENCE_MS = { renew: 500, report: 3_000, register: 3_000 } as const

/** With one replica, and in all. */
type Patience = { readonly patienceMs: number; readonly timeoutMs?: number }

export type ControlClient = {
  /** @throws CodedError `stale_epoch` and whatever the control plane says; `unavailable` when it cannot be reached */
  register(body: RegisterHost, signal: AbortSignal): Promise<RegisteredHost>
  renew(hostId: string, body: { epoch: number; boot_id: string }, signal: AbortSignal): Promise<{ epoch: number; seq: number }>
  report(hostId: string, body: { epoch: number; items: HostReport[] }, signal: AbortSignal): Promise<HostReportsAnswer>
  /** Ends when the control plane ends it. */
  watch(hostId: string, epoch: number, signal: AbortSignal): AsyncGenerator<HostOrder>
}

/** What says nothing of the question: another replica may answer it. */
const OF_ONE_REPLICA: ReadonlySet<string> = new Set(['unavailable', 'overloaded', 'internal'])

/** @param replicas of their listeners for machines @throws CodedError `invalid_request` when one is not TLS */
export function controlClient(replicas: Replicas, identity: OwnIdentity): ControlClient {
  for (const url of replicas.inTurn()) secureUrl(url, 'SANDGLASS_CONTROL_URL')
  const dial = httpDialler(controlPlaneAgent(identity, { keepAlive: true }))

  async function send(
    base: string,
    path: string,
    request: { headers: Readonly<Record<string, string>>; body?: string; signal: AbortSignal },
  ): Promise<IncomingMessage> {
    let response: IncomingMessage
    try {
      response = await dial(new URL(`${base}/internal/v1/hosts${path}`), request)
    } catch (cause) {
      throw new CodedError('unavailable', `The control plane cannot be reached: ${causeOf(cause)}`, { cause })
    }
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    const problem = parseProblem(await bodyOf(response).catch(() => undefined))
    const told = problem?.epoch === undefined ? {} : { epoch: problem.epoch }
    throw new CodedError(problem?.code ?? 'unavailable', problem?.detail ?? `The control plane answered ${status}.`, told)
  }

  function post<T>(
    path: string,
    body: unknown,
    parser: Parser<T>,
    signal: AbortSignal,
    { patienceMs, timeoutMs = LIMITS.hostControlRequestMs }: Patience,
  ): Promise<T> {
    const text = JSON.stringify(body)
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    const ask = async (base: string, stop: AbortSignal): Promise<T> =>
      parser.parse(await bodyOf(await send(base, path, { headers: { 'content-type': 'application/json' }, body: text, signal: stop })))
    return askReplicas(replicas, ask, { patienceMs, signal: bounded, isAnswer: (error) => error instanceof CodedError && !OF_ONE_REPLICA.has(error.code) })
  }

  return {
    register: (body, signal) => post('/register', body, registered, signal, { patienceMs: PATIENCE_MS.register }),
    renew: (hostId, body, signal) => post(`/${hostId}/renew`, body, renewed, signal, { patienceMs: PATIENCE_MS.renew, timeoutMs: LIMITS.hostRenewalMs }),
    report: (hostId, body, signal) => post(`/${hostId}/reports`, body, answered, signal, { patienceMs: PATIENCE_MS.report }),
    async *watch(hostId, epoch, signal) {
      const base = replicas.current
      const moved = new AbortController()
      const off = replicas.onMove((from) => {
        if (from === base) moved.abort(new Error('another replica answers'))
      })
      try {
        const headers = { accept: 'application/x-ndjson' }
        const response = await send(base, `/${hostId}/watch?epoch=${epoch}`, { headers, signal: AbortSignal.any([signal, moved.signal]) })
        for await (const line of splitLines(response)) if (line !== '') yield order.parse(JSON.parse(line))
      } finally {
        off()
        // However it ended, the next one is with another replica: this one may be about to stop.
        replicas.failed(base)
      }
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
