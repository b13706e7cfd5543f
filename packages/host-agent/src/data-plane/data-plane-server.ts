/**
 * The data plane: gateways come here with requests for guests, over HTTP/2 and TLS, and show that they are gateways by their certificates. Any gateway of the
 * installation may come; which sandbox it may reach is what the control plane has told it.
 *
 * guard: conn.gen. A request names the generation it is meant for; it goes through only to the runtime of exactly that generation.
 */

import { once } from 'node:events'
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { TLSSocket } from 'node:tls'
import { CodedError, ERRORS, LIMITS, PROBLEM_MEDIA_TYPE, problemOf } from '@sandglass/contract'
import type { SandboxUsage } from '@sandglass/contract/usage'
import { type OwnIdentity, PeerRefused, type RefusalReporter, requirePeer, serverOptions } from '@sandglass/identity'
import type { OpenSpan, Tracing } from '@sandglass/telemetry'
import type { GuestChannel } from '../guest/guest-channel.ts'
import { type Log, reasonOf } from '../log.ts'
import { type GuestTarget, parseTarget } from './guest-route.ts'
import { headersToGuest, lengthOf } from './header-filter.ts'
import { pipeRequest } from './pipe-request.ts'

const MIB = 1024 * 1024
const SESSION_MEMORY_MB = 256
const SESSION_WINDOW_BYTES = 64 * MIB
const FRAME_BYTES = 64 * 1024
const HEADER_PAIRS = 64
/** A gateway resets a stream for each cancelled follower. */
const RESETS_IN_A_BURST = 20_000
const RESETS_PER_SECOND = 2_000
const STRANGER_MS = 2_000
const RETRY_AFTER_SECONDS = '1'

/** The part of a guest's path that no client chose. */
const KIND_OF_PATH = /^\/v1\/[a-z]+/
/** With POST: a program is to be started. */
const COMMAND = /^\/v1\/(exec|processes)(\?|$)/

export type DataPlaneWorld = {
  readonly identity: OwnIdentity
  /** Where those who are no gateways are told. */
  readonly refusals: Pick<RefusalReporter, 'note'>
  /** The channel of a runtime. @throws CodedError `sandbox_not_found`, `stale_generation`, `sandbox_not_ready`, `sandbox_ended` */
  route(target: GuestTarget): GuestChannel
  /** Counted by this host. @throws CodedError as `route` */
  usage(target: GuestTarget): SandboxUsage
  /** A guest is asked to start its first program since this agent serves it. @returns to be called when that request is over */
  firstCommandBegins(): () => void
  readonly tracing: Tracing
  readonly log: Log
}

export type DataPlaneCounters = { requests: number; refused: number; broken: number; bytesUp: number; bytesDown: number; streams: number; sessions: number }

export class DataPlaneServer {
  readonly counters: DataPlaneCounters = { requests: 0, refused: 0, broken: 0, bytesUp: 0, bytesDown: 0, streams: 0, sessions: 0 }
  readonly #world: DataPlaneWorld
  readonly #server: Http2SecureServer
  readonly #connections = new Set<Http2Session>()
  /** Why those are refused who are no gateways. */
  readonly #strangers = new Map<Http2Session, PeerRefused>()
  readonly #streamsOf = new Map<string, number>()
  readonly #commanded = new WeakSet<GuestChannel>()
  #url = ''

  constructor(world: DataPlaneWorld) {
    this.#world = world
    this.#server = createSecureServer({
      ...serverOptions(world.identity.pair),
      maxSessionMemory: SESSION_MEMORY_MB,
      maxHeaderListPairs: HEADER_PAIRS,
      streamResetBurst: RESETS_IN_A_BURST,
      streamResetRate: RESETS_PER_SECOND,
      settings: {
        enablePush: false,
        initialWindowSize: LIMITS.guestStreamWindowBytes,
        maxConcurrentStreams: LIMITS.dataPlaneStreams,
        maxHeaderListSize: LIMITS.guestHeaderBytes,
        maxFrameSize: FRAME_BYTES,
      },
    })
    world.identity.onReplaced(() => this.#server.setSecureContext(serverOptions(world.identity.pair)))
    this.#server.on('session', (session) => this.#welcome(session))
    this.#server.on('sessionError', (error) => world.log.info('data_plane.session_failed', { reason: reasonOf(error) }))
    this.#server.on('stream', (stream, headers) => void this.#serve(stream, headers))
  }

  /** @param place port 0: one that is free; `advertised`: what gateways dial in place of the address @returns where gateways reach it */
  async listen(place: { readonly address: string; readonly port: number; readonly advertised?: string | undefined }): Promise<string> {
    this.#server.listen(place.port, place.address)
    await once(this.#server, 'listening')
    const address: AddressInfo | string | null = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the data plane has no port')
    const host = place.advertised ?? place.address
    this.#url = `https://${host.includes(':') ? `[${host}]` : host}:${address.port}`
    return this.#url
  }

  get url(): string {
    return this.#url
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const session of this.#connections) {
      session.goaway()
      session.destroy()
    }
    await closed
  }

  #welcome(session: ServerHttp2Session): void {
    if (this.#connections.size >= LIMITS.dataPlaneSessions) {
      // Who is no gateway makes room, so that idle strangers cannot keep gateways out.
      const [stranger] = this.#strangers.keys()
      stranger?.destroy()
      if (stranger === undefined) {
        session.destroy()
        return
      }
    }
    this.#connections.add(session)
    const refusal = this.#judge(session)
    if (refusal !== undefined) this.#strangers.set(session, refusal)
    this.counters.sessions = this.#connections.size
    session.setLocalWindowSize(SESSION_WINDOW_BYTES)
    session.on('error', () => session.destroy())
    session.once('close', () => {
      this.#connections.delete(session)
      this.#strangers.delete(session)
      this.counters.sessions = this.#connections.size
    })
  }

  /** A gateway's session ends with the certificate that opened it: gracefully, its requests come to their end. */
  #judge(session: ServerHttp2Session): PeerRefused | undefined {
    const { identity, refusals } = this.#world
    const { socket } = session
    try {
      const peer = identity.check(socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined)
      requirePeer(peer, 'gateway')
      const end = setTimeout(() => session.close(), Math.max(0, peer.notAfterMs + LIMITS.certificateToleranceMs - identity.wallMs()))
      end.unref()
      session.once('close', () => clearTimeout(end))
      return undefined
    } catch (error) {
      if (!(error instanceof PeerRefused)) throw error
      refusals.note(error, socket.remoteAddress)
      // For one answer that says why.
      session.setTimeout(STRANGER_MS, () => session.destroy())
      return error
    }
  }

  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on('error', () => {})
    this.counters.requests += 1
    const method = headers[':method'] ?? 'GET'
    let done: (() => void) | undefined
    let span: OpenSpan | undefined
    let firstCommandEnds: (() => void) | undefined
    try {
      const { session: connection } = stream
      // Of a connection that is over, or was never let in, nobody knows whose it was.
      if (connection === undefined || !this.#connections.has(connection)) {
        stream.destroy()
        return
      }
      const refusal = this.#strangers.get(connection)
      if (refusal !== undefined) throw refusal
      const target = parseTarget(method, headers[':path'] ?? '/')
      span = this.#openSpan(method, target, headers['traceparent'])
      done = this.#count(target.sandbox)
      if (target.asksForUsage) {
        answerUsage(stream, this.#world.usage(target))
        return
      }
      const channel = this.#world.route(target)
      if (method === 'POST' && COMMAND.test(target.path) && !this.#commanded.has(channel)) {
        this.#commanded.add(channel)
        firstCommandEnds = this.#world.firstCommandBegins()
      }
      const session = channel.connected ? channel.session() : await channel.waitForSession(LIMITS.guestChannelWaitMs)
      if (stream.destroyed) return
      const guest = session.request({
        method,
        path: target.path,
        headers: { ...headersToGuest(headers), ...spanHeader(span) },
        endStream: stream.endAfterHeaders,
      })
      const end = await pipeRequest(stream, guest, lengthOf(headers), (error) => this.#refuse(stream, error))
      this.counters.bytesUp += end.bytesUp
      this.counters.bytesDown += end.bytesDown
      if (!end.clean) this.counters.broken += 1
      span.end(end.clean ? {} : { error: 'broken_off' })
      span = undefined
    } catch (error) {
      const told = error instanceof CodedError ? error : new CodedError('internal', undefined, { cause: error })
      span?.set({ 'error.type': told.code })
      this.#refuse(stream, told)
    } finally {
      span?.end()
      done?.()
      firstCommandEnds?.()
    }
  }

  #openSpan(method: string, { sandbox, generation, path }: GuestTarget, parent: string | string[] | undefined): OpenSpan {
    return this.#world.tracing.open(`guest ${method} ${KIND_OF_PATH.exec(path)?.[0] ?? ''}`, {
      kind: 'client',
      parent: typeof parent === 'string' ? parent : undefined,
      attributes: { 'sandglass.sandbox': sandbox, 'sandglass.generation': generation },
    })
  }

  /** @returns to be called when the stream is over @throws CodedError `overloaded` */
  #count(sandbox: string): () => void {
    const ofSandbox = this.#streamsOf.get(sandbox) ?? 0
    if (this.counters.streams >= LIMITS.dataPlaneStreams || ofSandbox >= LIMITS.dataPlaneStreamsPerSandbox) {
      throw new CodedError('overloaded', 'Too many requests to this sandbox are open.', {
        limit: { name: 'dataPlaneStreamsPerSandbox', value: LIMITS.dataPlaneStreamsPerSandbox },
      })
    }
    this.counters.streams += 1
    this.#streamsOf.set(sandbox, ofSandbox + 1)
    return () => {
      this.counters.streams -= 1
      const left = (this.#streamsOf.get(sandbox) ?? 1) - 1
      if (left === 0) this.#streamsOf.delete(sandbox)
      else this.#streamsOf.set(sandbox, left)
    }
  }

  /** An answer of the host's own, marked as such so that a gateway does not take it for the guest's. */
  #refuse(stream: ServerHttp2Stream, error: CodedError): void {
    this.counters.refused += 1
    if (error.code === 'internal') this.#world.log.error('data_plane.failed', { reason: reasonOf(error.context.cause) })
    if (stream.destroyed || stream.headersSent) {
      stream.destroy()
      return
    }
    const { status, retryable } = ERRORS[error.code]
    stream.respond({
      ':status': status,
      'content-type': PROBLEM_MEDIA_TYPE,
      'sandglass-from': 'host',
      ...(retryable && status === 503 ? { 'retry-after': RETRY_AFTER_SECONDS } : {}),
    })
    stream.end(JSON.stringify(problemOf(error)))
    stream.resume()
  }
}

function answerUsage(stream: ServerHttp2Stream, usage: SandboxUsage): void {
  stream.respond({ ':status': 200, 'content-type': 'application/json', 'sandglass-from': 'host' })
  stream.end(JSON.stringify(usage))
  stream.resume()
}

const spanHeader = ({ traceparent }: OpenSpan): { traceparent?: string } => (traceparent === undefined ? {} : { traceparent })
