/**
 * Requests to the guest agent of a sandbox, through its host.
 *
 * Every request names the generation it is meant for, and the host refuses another one. A refused route is resolved again, once; what may
 * be sent twice without harm is also sent again when the session ended before an answer.
 */
import { type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from 'node:http2'
import { CodedError, type ErrorCode, LIMITS, type Parser, type Route, type SandboxId } from '@sandglass/contract'
import { errorOfAnswer } from '../problems/guest-problem.ts'
import { codedError } from '../problems/send-problem.ts'
import type { World } from '../world.ts'
import { HostAnswer, lostContact, resetStream } from './host-answer.ts'
import type { HostPool } from './host-pool.ts'

const ERROR_BODY_BYTES = 64 * 1024
/** A host that says one of these is not where the runtime is, or not any more. Guests cannot say them. */
const STALE: ReadonlySet<ErrorCode> = new Set(['stale_generation', 'stale_epoch', 'sandbox_not_found', 'sandbox_ended'] satisfies ErrorCode[])

/**
 * Writes a streamed body and ends it. Rejects when its source broke; the stream is then reset, so that a cut body is never taken as whole.
 * The stream's `response` or `close` before the end means that the rest is not wanted.
 */
export type BodyPump = (stream: ClientHttp2Stream) => Promise<void>

export type GuestRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD'
  /** Of the guest protocol, with its query. */
  readonly path: string
  readonly headers?: OutgoingHttpHeaders
  readonly json?: unknown
  readonly body?: Uint8Array | BodyPump
  /** May it be sent again when it is not known whether it arrived? */
  readonly isRepeatable: boolean
  /** Its answer waits for a program to read, which may be never. Others are answered within LIMITS.guestAnswerMs, work on files later. */
  readonly isLong?: boolean
  /** It is work on files: its body is taken without a pause of LIMITS.uploadStallMs, and it is answered within LIMITS.guestWorkMs of that. */
  readonly isWork?: boolean
  /** Resets the stream; its reason is what is thrown. */
  readonly signal: AbortSignal
}

/** Finds where the runtime of one sandbox is. */
export type RouteSource = {
  /** @throws CodedError why there is none */
  current(): Promise<Route>
  /** Asks again, because the host said that this one is stale. @throws CodedError `unavailable` when nothing newer is known */
  renewed(stale: Route): Promise<Route>
}

export type GuestTarget = { readonly sandboxId: SandboxId; readonly traceparent: string | undefined }

export class GuestClient {
  readonly #pool: HostPool
  readonly #routes: RouteSource
  readonly #target: GuestTarget
  readonly #world: World

  constructor(pool: HostPool, routes: RouteSource, target: GuestTarget, world: World) {
    this.#world = world
    this.#pool = pool
    this.#routes = routes
    this.#target = target
  }

  /** An answer that is a success. @throws CodedError */
  async send(request: GuestRequest): Promise<HostAnswer> {
    const route = await this.#routes.current()
    try {
      return await this.#attempt(route, request)
    } catch (error) {
      request.signal.throwIfAborted()
      const { code } = codedError(error)
      if (typeof request.body === 'function') throw staleIsUnavailable(error)
      if (STALE.has(code)) return this.#again(await this.#routes.renewed(route), request)
      if (code === 'lost_contact' && request.isRepeatable) return this.#again(route, request)
      throw error
    }
  }

  /** Sends and parses a JSON answer. @throws CodedError */
  async json<T>(request: GuestRequest, parser: Parser<T>, limitBytes: number = LIMITS.guestJsonBytes): Promise<T> {
    const answer = await this.send(request)
    return parseGuestJson(await this.bytes(answer, limitBytes), parser)
  }

  /** The body of a small answer. @throws CodedError `client_timeout` when it has not ended within LIMITS.guestAnswerMs, else as `HostAnswer.bytes` */
  async bytes(answer: HostAnswer, limitBytes: number): Promise<Uint8Array> {
    let isLate = false
    const cancel = this.#world.timer(LIMITS.guestAnswerMs, () => {
      isLate = true
      answer.cancel()
    })
    try {
      return await answer.bytes(limitBytes)
    } catch (error) {
      throw isLate ? late(LIMITS.guestAnswerMs) : error
    } finally {
      cancel()
    }
  }

  /** Until the body is sent or an answer came before its end: then the rest is not wanted. */
  async #sendBody(stream: ClientHttp2Stream, body: BodyPump, answer: Promise<HostAnswer>, signal: AbortSignal): Promise<void> {
    try {
      await Promise.race([body(stream), answer])
    } catch (error) {
      answer.catch(() => undefined)
      resetStream(stream)
      signal.throwIfAborted()
      throw error
    }
  }

  /** Gives up when the sandbox takes nothing of a body that is there. A client that is slow is none of its business. */
  #watchStall(stream: ClientHttp2Stream): void {
    let cancel: () => void = () => undefined
    const arm = () => {
      cancel()
      cancel = this.#world.timer(LIMITS.uploadStallMs, () => {
        if (stream.writableNeedDrain) stream.destroy(new NoAnswer(LIMITS.uploadStallMs))
        else arm()
      })
    }
    arm()
    stream.on('drain', arm)
    stream.once('close', () => {
      stream.off('drain', arm)
      cancel()
    })
  }

  async #again(route: Route, request: GuestRequest): Promise<HostAnswer> {
    try {
      return await this.#attempt(route, request)
    } catch (error) {
      throw staleIsUnavailable(error)
    }
  }

  async #attempt(route: Route, request: GuestRequest): Promise<HostAnswer> {
    const { signal } = request
    signal.throwIfAborted()
    const body = request.json === undefined ? request.body : Buffer.from(JSON.stringify(request.json))
    const stream = await this.#open(route, request, body)
    const abort = () => stream.destroy(new Error('cancelled'))
    signal.addEventListener('abort', abort, { once: true })
    stream.once('close', () => signal.removeEventListener('abort', abort))
    // Errors are told by the answer or by reading its body.
    stream.on('error', () => undefined)
    if (signal.aborted) abort()
    const answer = answerOf(stream, signal)
    const giveUpAfter = (ms: number) => this.#world.timer(ms, () => stream.destroy(new NoAnswer(ms)))
    let cancelDeadline = request.isLong === true || request.isWork === true ? () => undefined : giveUpAfter(LIMITS.guestAnswerMs)
    try {
      if (body instanceof Uint8Array) stream.end(body)
      else if (body !== undefined) {
        if (request.isWork === true) this.#watchStall(stream)
        await this.#sendBody(stream, body, answer, signal)
      }
      if (request.isWork === true) cancelDeadline = giveUpAfter(LIMITS.guestWorkMs)
      const answered = await answer
      cancelDeadline()
      if (answered.isSuccess) return answered
      throw await this.#refusal(answered, request.method === 'HEAD')
    } finally {
      cancelDeadline()
    }
  }

  async #refusal(answer: HostAnswer, isHead: boolean): Promise<CodedError> {
    if (answer.source === 'host' && answer.status === 401) {
      answer.cancel()
      return new CodedError('unavailable', 'The host of this sandbox does not accept this gateway.')
    }
    if (isHead) {
      answer.cancel()
      const codes = answer.source === 'guest' ? HEAD_ERRORS : HEAD_REFUSALS
      return new CodedError(codes[answer.status] ?? 'internal')
    }
    return errorOfAnswer(answer.source, await this.bytes(answer, ERROR_BODY_BYTES))
  }

  /** A host agent that was started again has another address; nothing was sent yet, so this is safe for every request. */
  async #open(route: Route, request: GuestRequest, body: Uint8Array | BodyPump | undefined): Promise<ClientHttp2Stream> {
    const ask = (route: Route) => this.#pool.request(route, this.#headers(route.generation, request, body), body === undefined)
    try {
      return await ask(route)
    } catch (error) {
      if (codedError(error).code !== 'unavailable') throw error
      return ask(await this.#routes.renewed(route))
    }
  }

  #headers(generation: number, request: GuestRequest, body: Uint8Array | BodyPump | undefined): OutgoingHttpHeaders {
    const { sandboxId, traceparent } = this.#target
    return {
      ':method': request.method,
      ':path': `/sandboxes/${sandboxId}/generations/${generation}${request.path}`,
      ...request.headers,
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(request.json === undefined ? {} : { 'content-type': 'application/json' }),
      ...(body instanceof Uint8Array ? { 'content-length': body.byteLength } : {}),
    }
  }
}

/** Why a stream was reset that got no answer in time. */
class NoAnswer extends Error {
  readonly ms: number

  constructor(ms: number) {
    super(`no answer in ${ms} ms`)
    this.ms = ms
  }
}

const late = (ms: number): CodedError => new CodedError('client_timeout', `The sandbox did not answer in ${ms} ms.`)

/** By status: an answer to HEAD has no body that could say more. */
const HEAD_ERRORS: Readonly<Record<number, ErrorCode>> = {
  400: 'path_invalid',
  403: 'permission_denied',
  404: 'file_not_found',
  409: 'not_a_regular_file',
  412: 'precondition_failed',
}

/** The same for what a host refuses: of the codes with a status, the one after which a route is asked for anew. */
const HEAD_REFUSALS: Readonly<Record<number, ErrorCode>> = {
  404: 'sandbox_not_found',
  409: 'stale_generation',
  410: 'sandbox_ended',
  502: 'lost_contact',
  503: 'unavailable',
}

function staleIsUnavailable(error: unknown): unknown {
  const { code } = codedError(error)
  if (!STALE.has(code)) return error
  return new CodedError('unavailable', 'The sandbox is changing; try again in a moment.', { cause: error })
}

function answerOf(stream: ClientHttp2Stream, signal: AbortSignal): Promise<HostAnswer> {
  return new Promise((resolve, reject) => {
    let cause: unknown
    stream.once('error', (error) => {
      cause = error
    })
    const closed = () => reject(signal.aborted ? signal.reason : closedBeforeAnswer(stream, cause))
    stream.once('close', closed)
    stream.once('response', (headers) => {
      stream.off('close', closed)
      resolve(new HostAnswer(stream, headers, signal))
    })
  })
}

function closedBeforeAnswer(stream: ClientHttp2Stream, cause: unknown): CodedError {
  if (cause instanceof NoAnswer) return late(cause.ms)
  return stream.rstCode === constants.NGHTTP2_REFUSED_STREAM ? new CodedError('overloaded') : lostContact(cause)
}

/** @throws CodedError `internal` when a guest's JSON is not what the protocol says */
export function parseGuestJson<T>(bytes: Uint8Array, parser: Parser<T>): T {
  try {
    return parser.parse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch (cause) {
    throw new CodedError('internal', 'The sandbox gave an answer that does not follow the protocol.', { cause })
  }
}
