/**
 * A control plane for tests of the host agent: implements the host API over TLS, signs what a test asks it to, keeps what it was told.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { TLSSocket } from 'node:tls'
import {
  type EndOrder,
  ERRORS,
  type ErrorCode,
  type HostReport,
  HostReportsSchema,
  type JoinRequest,
  JoinRequestSchema,
  LIMITS,
  type PeerRefusal,
  PeerRefusalsSchema,
  type PoolOrder,
  type PoolSpec,
  parserOf,
  poolSpecText,
  type RegisterHost,
  RegisterHostSchema,
  RenewLeaseSchema,
  type RuntimeSpec,
  type Signed,
  type StartTicket,
  sha256Hex,
  signPayload,
} from '@sandglass/contract'
import { TEST_AUTHORITY } from '@sandglass/testkit'
import { until } from './until.ts'

const register = parserOf(RegisterHostSchema)
const renew = parserOf(RenewLeaseSchema)
const reportsParser = parserOf(HostReportsSchema)

const joins = parserOf(JoinRequestSchema)
const refusalsParser = parserOf(PeerRefusalsSchema)

export class ScriptedControlPlane {
  readonly key: { id: string; privateKey: KeyObject; publicKey: KeyObject }
  readonly reports: HostReport[] = []
  readonly registrations: RegisterHost[] = []
  /** What the next report of an end is answered with. */
  outcome: (report: HostReport) => 'accepted' | 'stale' = () => 'accepted'
  /** Set to refuse requests, as an outage would. */
  outage = false
  /** Renewals alone get no answer; what is watched stays open. */
  renewalsLost = false
  /** Renewals and registrations are refused with `stale_epoch`, which tells of this epoch, or of none. */
  refusal: { readonly told?: number } | undefined
  renewals = 0
  /** A ticket lives for `LIMITS.ticketTerms` of them. */
  renewPeriodMs: number = LIMITS.renewPeriodMs
  joins = 0
  /** Of the host that joined. */
  hostId = ''
  /** What the host has refused. */
  readonly refusals: PeerRefusal[] = []
  epoch = 0
  seq = 0
  boot = ''
  readonly #server: Server
  readonly #watches = new Set<ServerResponse>()
  #url = ''

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    this.key = { id: 'k1', privateKey, publicKey }
    this.#server = createServer(TEST_AUTHORITY.server({ role: 'control-plane', name: 'scripted' }), (request, response) => void this.#answer(request, response))
  }

  static async start(): Promise<ScriptedControlPlane> {
    const plane = new ScriptedControlPlane()
    plane.#server.listen(0, '127.0.0.1')
    await once(plane.#server, 'listening')
    const address = plane.#server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    plane.#url = `https://127.0.0.1:${address.port}`
    return plane
  }

  get url(): string {
    return this.#url
  }

  get watching(): boolean {
    return this.#watches.size > 0
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
  }

  ticket(spec: RuntimeSpec, fields: Partial<StartTicket> & { generation: number; host: string }): { ticket: StartTicket; spec: string } {
    const text = JSON.stringify(spec)
    const ticket: StartTicket = {
      kind: 'start',
      sandbox: spec.sandbox,
      epoch: this.epoch,
      term: this.seq,
      spec_sha256: sha256Hex(text),
      amounts: spec.resources,
      pool: null,
      ...fields,
    }
    return { ticket, spec: text }
  }

  /** @param beside what is signed: more fields of the line */
  sendStart(ticket: StartTicket, spec: string, beside: object = {}): void {
    this.#send({ type: 'start', ticket: signPayload(ticket, this.key), spec, ...beside })
  }

  sendSigned(ticket: Signed, spec: string): void {
    this.#send({ type: 'start', ticket, spec })
  }

  sendEnd(order: Pick<EndOrder, 'sandbox' | 'upto' | 'host'> & Partial<EndOrder>): void {
    this.#send({ type: 'end', order: signPayload({ kind: 'end', term: this.seq, pool: null, ...order }, this.key) })
  }

  sendPool(order: Omit<PoolOrder, 'kind'>, spec: PoolSpec): void {
    this.#send({ type: 'pool', order: signPayload({ kind: 'pool', ...order }, this.key), spec: poolSpecText(spec) })
  }

  /** Orders are taken in order, so when this end is reported everything sent before it was looked at. */
  async barrier(sandbox: string, host: string): Promise<void> {
    this.sendEnd({ sandbox, upto: 1, host })
    await this.untilReported('ended', sandbox)
  }

  /** Takes the lease from the host, as an observer does: the epoch is over, and nobody holds the next one. */
  fence(): void {
    this.epoch += 1
    this.boot = ''
  }

  /** A raw line on every open watch. */
  sendLine(line: string): void {
    for (const watch of this.#watches) watch.write(`${line}\n`)
  }

  breakWatches(): void {
    for (const watch of this.#watches) watch.destroy()
  }

  /** Reports of a type about a sandbox, oldest first. */
  reported<T extends HostReport['type']>(type: T, sandbox: string): Extract<HostReport, { type: T }>[] {
    return this.reports.filter(
      (report): report is Extract<HostReport, { type: T }> => report.type === type && 'sandbox' in report && report.sandbox === sandbox,
    )
  }

  async untilReported<T extends HostReport['type']>(
    type: T,
    sandbox: string,
    where: (report: Extract<HostReport, { type: T }>) => boolean = () => true,
    timeoutMs?: number,
  ): Promise<Extract<HostReport, { type: T }>> {
    return until(`${type} of ${sandbox}`, () => this.reported(type, sandbox).find(where), timeoutMs)
  }

  async untilWatching(): Promise<void> {
    await until('a watch', () => (this.watching ? true : undefined), 60_000)
  }

  #send(line: unknown): void {
    for (const watch of this.#watches) watch.write(`${JSON.stringify(line)}\n`)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.outage || (this.renewalsLost && request.url?.endsWith('/renew') === true)) {
      request.socket.destroy()
      return
    }
    const path = request.url ?? ''
    const certificate = request.socket instanceof TLSSocket ? request.socket.getPeerX509Certificate() : undefined
    if (certificate === undefined && path !== '/internal/v1/join') return problem(response, 'certificate_required')
    if (request.method === 'GET' && path.includes('/watch')) {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' })
      response.write('{"type":"synced"}\n')
      this.#watches.add(response)
      response.once('close', () => this.#watches.delete(response))
      return
    }
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    if (path.endsWith('/join')) this.#join(joins.parse(body), response)
    else if (path.endsWith('/certificates')) json(response, TEST_AUTHORITY.issued('host', this.hostId, certificate?.publicKey ?? this.key.publicKey))
    else if (path.endsWith('/refusals')) this.#refusals(refusalsParser.parse(body).items, response)
    else if (path.endsWith('/register')) this.#register(register.parse(body), response)
    else if (path.endsWith('/renew')) this.#renew(renew.parse(body), response)
    else this.#report(reportsParser.parse(body).items, response)
  }

  #join({ name, public_key_pem }: JoinRequest, response: ServerResponse): void {
    this.joins += 1
    this.hostId = name
    json(response, TEST_AUTHORITY.issued('host', name, createPublicKey(public_key_pem)))
  }

  #refusals(items: readonly PeerRefusal[], response: ServerResponse): void {
    this.refusals.push(...items)
    response.writeHead(204).end()
  }

  #register(body: RegisterHost, response: ServerResponse): void {
    this.registrations.push(body)
    const repeated = body.expected_epoch === this.epoch - 1 && body.boot_id === this.boot
    const refusal = this.refusal ?? (body.expected_epoch === this.epoch || repeated ? undefined : { told: this.epoch })
    if (refusal !== undefined) {
      problem(response, 'stale_epoch', refusal.told)
      return
    }
    if (!repeated) this.epoch = body.expected_epoch + 1
    this.boot = body.boot_id
    this.seq += 1
    // What was watched before is over, whether or not its end has come through.
    this.breakWatches()
    this.#watches.clear()
    const ticket_keys = [{ id: this.key.id, public_key_pem: this.key.publicKey.export({ type: 'spki', format: 'pem' }).toString() }]
    json(response, { epoch: this.epoch, seq: this.seq, ticket_keys, renew_period_ms: this.renewPeriodMs })
  }

  #renew({ epoch, boot_id }: { epoch: number; boot_id: string }, response: ServerResponse): void {
    this.renewals += 1
    const refusal = this.refusal ?? (epoch === this.epoch && boot_id === this.boot ? undefined : { told: this.epoch })
    if (refusal !== undefined) {
      problem(response, 'stale_epoch', refusal.told)
      return
    }
    this.seq += 1
    json(response, { epoch, seq: this.seq })
  }

  #report(items: readonly HostReport[], response: ServerResponse): void {
    this.reports.push(...items)
    json(response, { results: items.map((item) => ({ outcome: this.outcome(item), code: null })) })
  }
}

function json(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function problem(response: ServerResponse, code: ErrorCode, epoch?: number): void {
  const { status, title } = ERRORS[code]
  response
    .writeHead(status, { 'content-type': 'application/problem+json' })
    .end(JSON.stringify({ type: 'about:blank', title, status, detail: title, code, retryable: false, ...(epoch === undefined ? {} : { epoch }) }))
}
