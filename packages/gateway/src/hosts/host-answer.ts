/**
 * An answer of a host agent, and the one way to read it.
 *
 * Node.js reports a session that was destroyed as a clean `end` of its streams, told apart only by the reset code. So a body ends here
 * only when the other side ended it, and everything else is `lost_contact`.
 *
 * HTTP/2 brings a body in frames of 16 KiB and calls once for each. Whoever waits is woken when all that came at once is there, because a
 * wake and what hangs on it cost more than the bytes of a frame.
 */
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2'
import { CodedError } from '@sandglass/contract'
import { ANSWER_SOURCE_HEADER, type AnswerSource } from '../problems/guest-problem.ts'
import type { World } from '../world.ts'

/** Bytes that may wait here before no more are taken from the stream. */
const WAITING_BYTES = 256 * 1024
/** How long a stream that is as good as over may take to end by itself. */
const END_WAIT_MS = 250

export const lostContact = (cause?: unknown): CodedError =>
  new CodedError('lost_contact', 'Contact with the sandbox was lost before the answer was complete.', { cause })

export class HostAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly source: AnswerSource
  readonly #stream: ClientHttp2Stream
  readonly #signal: AbortSignal
  #trailers: IncomingHttpHeaders = {}
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #phase: 'open' | 'ended' | 'lost' | 'left' = 'open'
  #cause: unknown
  #wake: (() => void) | undefined

  constructor(stream: ClientHttp2Stream, headers: IncomingHttpHeaders & IncomingHttpStatusHeader, signal: AbortSignal) {
    this.#stream = stream
    this.#signal = signal
    this.status = headers[':status'] ?? 0
    this.headers = headers
    this.source = headers[ANSWER_SOURCE_HEADER] === 'host' ? 'host' : 'guest'
    stream.once('trailers', (trailers) => {
      this.#trailers = trailers
    })
    this.#read()
  }

  get isSuccess(): boolean {
    return (this.status >= 200 && this.status < 300) || this.status === 304
  }

  /** Known once the body has ended. */
  get trailers(): IncomingHttpHeaders {
    return this.#trailers
  }

  header(name: string): string | undefined {
    const value = this.headers[name]
    return typeof value === 'string' ? value : undefined
  }

  /** Something can be taken without waiting. */
  get hasMore(): boolean {
    return this.#waiting.length > 0
  }

  /**
   * What has come of the body since the last call, at least one chunk; undefined at its end. No more comes than is taken.
   * @throws CodedError `lost_contact`, or the reason of the request's signal
   */
  async next(): Promise<readonly Uint8Array[] | undefined> {
    while (this.#waiting.length === 0) {
      if (this.#phase !== 'open') return this.#end()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const chunks = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    if (this.#stream.isPaused()) this.#stream.resume()
    return chunks
  }

  /** The body, chunk by chunk, read as fast as it is asked for. @throws as `next` */
  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (let chunks = await this.next(); chunks !== undefined; chunks = await this.next()) yield* chunks
    } finally {
      this.cancel()
    }
  }

  /** The whole body. @throws CodedError `lost_contact`, `internal` when it is longer than the limit */
  async bytes(limitBytes: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of this.chunks()) {
      bytes += chunk.byteLength
      if (bytes > limitBytes) throw new CodedError('internal', `The sandbox answered with more than ${limitBytes} bytes.`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks, bytes)
  }

  /** Resets the stream if it is still open. */
  cancel(): void {
    if (this.#phase !== 'left') resetStream(this.#stream)
  }

  /**
   * Nothing more is wanted of a stream that is as good as over: lets it end by itself, for a short time. Resetting each one would look like
   * an attack to the host.
   */
  leave(world: World): void {
    if (this.#phase !== 'open' || this.#stream.destroyed) return
    this.#phase = 'left'
    this.#waiting = []
    this.#stream.resume()
    const cancelTimer = world.timer(END_WAIT_MS, () => resetStream(this.#stream))
    this.#stream.once('close', cancelTimer)
  }

  /** From the first moment on: Node.js drops a body that is whole before anybody listens. */
  #read(): void {
    const stream = this.#stream
    stream.on('data', (chunk: Uint8Array) => {
      if (this.#phase !== 'open') return
      this.#waiting.push(chunk)
      this.#waitingBytes += chunk.byteLength
      if (this.#waitingBytes >= WAITING_BYTES) stream.pause()
      this.#wakeSoon()
    })
    stream.on('error', (cause) => {
      this.#cause = cause
    })
    stream.once('end', () => this.#over(stream.rstCode === constants.NGHTTP2_NO_ERROR ? 'ended' : 'lost'))
    // An answer that came before the end of the request's body makes the stream close early, but it has ended before that.
    stream.once('close', () => this.#over('lost'))
  }

  /** After all that came in the same turn. */
  #wakeSoon(): void {
    const wake = this.#wake
    if (wake === undefined) return
    this.#wake = undefined
    setImmediate(wake)
  }

  #over(how: 'ended' | 'lost'): void {
    if (this.#phase === 'open') this.#phase = how
    this.#wakeSoon()
  }

  #end(): undefined {
    this.#signal.throwIfAborted()
    if (this.#phase === 'lost') throw lostContact(this.#cause)
    return undefined
  }
}

/** A real reset. `close(code)` would first end the body cleanly, and the other side would take a cut upload as a whole one. */
export function resetStream(stream: ClientHttp2Stream): void {
  if (!stream.destroyed && !(stream.readableEnded && stream.writableFinished)) stream.destroy(new Error('cancelled'))
}
