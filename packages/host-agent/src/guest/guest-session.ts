/**
 * One HTTP/2 session with a guest agent, which is the server.
 *
 * Everything that arrives is hostile: header lists, pushed streams and invalid frames are limited here; bodies are bounded by whoever reads
 * them. Windows are large because the default of 64 KiB halves throughput; one stalled reader holds at most its own stream's window.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, type OutgoingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import { CodedError, GuestErrorSchema, type GuestPreamble, isErrorCode, LIMITS, type Parser, parserOf } from '@sandglass/contract'

const MIB = 1024 * 1024
const SESSION_MEMORY_MB = LIMITS.guestConnectionWindowBytes / MIB + 64
const HEADER_PAIRS = 64
const FRAME_BYTES = 64 * 1024

const errorParser = parserOf(GuestErrorSchema)

export type GuestRequest = {
  readonly method: string
  readonly path: string
  readonly headers?: OutgoingHttpHeaders
  /** No body follows. */
  readonly endStream?: boolean
}

export type GuestAnswer = { readonly status: number; readonly body: Buffer }

function openSession(socket: Socket): ClientHttp2Session {
  return connect('http://guest', {
    createConnection: () => socket,
    maxSessionMemory: SESSION_MEMORY_MB,
    maxHeaderListPairs: HEADER_PAIRS,
    maxReservedRemoteStreams: 0,
    settings: {
      enablePush: false,
      initialWindowSize: LIMITS.guestStreamWindowBytes,
      maxHeaderListSize: LIMITS.guestHeaderBytes,
      maxFrameSize: FRAME_BYTES,
    },
  })
}

export class GuestSession {
  readonly preamble: GuestPreamble
  readonly #session: ClientHttp2Session
  readonly #socket: Socket

  constructor(socket: Socket, preamble: GuestPreamble, onClose: () => void) {
    this.preamble = preamble
    this.#socket = socket
    this.#session = openSession(socket)
    this.#session.once('connect', () => this.#session.setLocalWindowSize(LIMITS.guestConnectionWindowBytes))
    this.#session.once('close', onClose)
    this.#session.on('error', () => this.destroy())
    this.#session.on('frameError', () => this.destroy())
    this.#session.on('goaway', () => this.destroy())
    this.#session.on('stream', (pushed) => pushed.close(constants.NGHTTP2_REFUSED_STREAM))
  }

  get open(): boolean {
    return !this.#session.destroyed && !this.#session.closed
  }

  destroy(): void {
    if (!this.#session.destroyed) this.#session.destroy()
    this.#socket.destroy()
  }

  /** @throws CodedError `lost_contact` */
  request({ method, path, headers = {}, endStream = false }: GuestRequest): ClientHttp2Stream {
    if (!this.open) throw new CodedError('lost_contact', 'The guest agent is not connected.')
    return this.#session.request({ ...headers, ':method': method, ':path': path }, { endStream })
  }

  /**
   * A request with small JSON both ways.
   * @throws CodedError with the guest's code, `lost_contact`, or `client_timeout`
   */
  async json<T>(method: string, path: string, answer: Parser<T>, body?: unknown, signal?: AbortSignal): Promise<T> {
    const { status, body: bytes } = await this.exchange(method, path, body, signal)
    let value: unknown
    try {
      value = JSON.parse(bytes.toString('utf8'))
    } catch (cause) {
      throw new CodedError('lost_contact', 'The guest agent did not answer with JSON.', { cause })
    }
    if (status >= 200 && status < 300) return answer.parse(value)
    if (errorParser.check(value) && isErrorCode(value.code)) throw new CodedError(value.code, value.detail)
    throw new CodedError('internal', `The guest agent answered ${status}.`)
  }

  /** The whole body of a small answer. @throws CodedError `lost_contact`, `client_timeout`, `body_too_large` */
  exchange(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<GuestAnswer> {
    const payload = body === undefined ? undefined : JSON.stringify(body)
    const headers = payload === undefined ? {} : { 'content-type': 'application/json' }
    const stream = this.request({ method, path, headers, endStream: payload === undefined })
    if (payload !== undefined) stream.end(payload)
    return collect(stream, signal)
  }
}

function collect(stream: ClientHttp2Stream, signal: AbortSignal | undefined): Promise<GuestAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let status = 0
    const fail = (error: unknown): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      stream.close(constants.NGHTTP2_CANCEL)
      reject(error)
    }
    const onAbort = (): void => fail(signal?.reason)
    const timer = setTimeout(() => fail(new CodedError('client_timeout', 'The guest agent did not answer in time.')), LIMITS.guestRequestMs)
    signal?.addEventListener('abort', onAbort, { once: true })
    stream.on('response', (head) => {
      status = head[':status'] ?? 0
    })
    stream.on('data', (chunk: Buffer) => {
      size += chunk.byteLength
      if (size > LIMITS.guestJsonBytes) fail(new CodedError('body_too_large', 'The guest agent’s answer is too large.'))
      else chunks.push(chunk)
    })
    stream.on('error', (cause) => fail(new CodedError('lost_contact', 'The guest agent broke off.', { cause })))
    stream.on('close', () => {
      if (!stream.readableEnded || status === 0) return fail(new CodedError('lost_contact', 'The guest agent broke off.'))
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      resolve({ status, body: Buffer.concat(chunks) })
    })
  })
}
