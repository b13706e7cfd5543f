/**
 * A live connection to one process that outlives its sockets.
 *
 * Problem: sockets break, gateways restart, and the process goes on. Choice: the session counts every byte of output that it got; after a
 * loss it attaches at exactly that offset, so no byte is lost or doubled, and it sends again the input that may not have arrived, as the same
 * writer, so that the guest can tell it from what others wrote (input-queue.ts). Whose input was overtaken by another writer ends with
 * `stdin_offset`, output included: a write has resolved long before that is known, so streams and `exit` are what can still tell it. A
 * start whose answer was lost is repeated with its process key, which makes it the same process.
 * What must stay true: a stream ends only when the exit's record says that all of it arrived; a session that cannot be found
 * again within its budget fails with `lost_contact`, never with a made-up exit.
 */

import { CodedError } from '@sandglass/contract/errors'
import { type ClientFrame, encodeClientFrame, errorOfStatus, parseServerFrame, type ServerStatus, WS_SUBPROTOCOL } from '@sandglass/contract/gateway-frames'
import { LIMITS } from '@sandglass/contract/limits'
import type { TerminalSize, Process as WireProcess } from '@sandglass/contract/process'
import { type SessionPass, sessionPass } from '#platform'
import { type DataPlane, webSocketUrl } from './data-plane.ts'
import { docsOf, errorOfCoded, SandglassError } from './error.ts'
import { InputQueue } from './input-queue.ts'
import { OutputQueue } from './output-queue.ts'
import { refusedUpgrade } from './refused-upgrade.ts'
import { firstFrame, noInput, type Opening, pathOf, type Standing, tooLong, writes } from './session-opening.ts'
import { isFinal, planReconnect, refusalOf } from './session-plan.ts'
import { type Socket, sleep } from './world.ts'

export type SessionOptions = {
  /** Milliseconds to look for lost contact. */
  readonly reconnectMs: number
  /** Output bytes that may wait here for their reader, both streams together. */
  readonly windowBytes: number
}

export const DEFAULT_RECONNECT_MS = 60_000
/** Before there is anything to come back to, whoever waits wants to know sooner. */
const FIRST_CONTACT_MS = 15_000
const START_TIMEOUT_MS = LIMITS.sessionStartTimeoutMs + 5_000
const SILENCE_MS = 3 * LIMITS.sessionHeartbeatMs
const NORMAL_CLOSE = 1000

type StreamName = 'stdout' | 'stderr'

/** One stream: what came, and where it will be complete. */
type StreamState = { readonly queue: OutputQueue; offset: number; end: number | undefined }

/** What ended one connection. */
type Ending = { readonly error: SandglassError } | 'closed'

export class Session {
  readonly input = new InputQueue()
  readonly #plane: DataPlane
  readonly #opening: Opening
  readonly #options: SessionOptions
  readonly #streams: Readonly<Record<StreamName, StreamState>>
  /** The same over all connections of this session, and no other's. */
  readonly #writer: string
  readonly #started = Promise.withResolvers<WireProcess>()
  readonly #exit = Promise.withResolvers<WireProcess>()
  readonly #stop = new AbortController()
  #process: WireProcess | undefined
  #exited: WireProcess | undefined
  #finished = false
  #hasGaps = false
  /** Counts what shows that contact is real; a connection that begins and breaks at once does not. */
  #progress = 0
  #socket: Socket | undefined
  /** Output bytes that the server may still send on this connection. */
  #creditLeft = 0
  #size: TerminalSize | undefined

  constructor(plane: DataPlane, opening: Opening, options: SessionOptions) {
    this.#plane = plane
    this.#opening = opening
    this.#options = options
    this.#writer = plane.transport.world.newKey()
    const since = opening.type === 'attach' ? opening : { sinceStdout: opening.type === 'terminal' ? opening.since : 0, sinceStderr: 0 }
    const queue = () => new OutputQueue(() => this.#giveCredit())
    this.#streams = {
      stdout: { queue: queue(), offset: since.sinceStdout, end: undefined },
      stderr: { queue: queue(), offset: since.sinceStderr, end: undefined },
    }
    if (!writes(opening)) this.input.fail(noInput(opening))
    // Nobody has to look at these: whoever does gets the error.
    this.#started.promise.catch(() => undefined)
    this.#exit.promise.catch(() => undefined)
  }

  get stdout(): OutputQueue {
    return this.#streams.stdout.queue
  }

  get stderr(): OutputQueue {
    return this.#streams.stderr.queue
  }

  /** Offset of the next byte of standard output that will come. */
  get stdoutOffset(): number {
    return this.#streams.stdout.offset
  }

  /** Bytes were lost to this reader. */
  get hasGaps(): boolean {
    return this.#hasGaps
  }

  /** Resolves with the process's record when it has exited and all its output is here. */
  get exit(): Promise<WireProcess> {
    return this.#exit.promise
  }

  /** Connects. @throws SandglassError why it did not start or could not be attached */
  open(): Promise<WireProcess> {
    const bytes = encodeClientFrame(this.#firstFrame()).byteLength - 1
    // The gateway would cut the connection before it could say why.
    if (bytes > LIMITS.controlFrameBytes) this.#fail(tooLong())
    else void this.#run()
    return this.#started.promise
  }

  /** Sets the size of the terminal, now or when contact is found again. */
  resize(size: TerminalSize): void {
    this.#size = size
    if (this.#process !== undefined) this.#send({ channel: 'resize', size })
  }

  /** Lets the process go on alone. @param error what readers and `exit` shall see */
  leave(error: unknown): void {
    this.#fail(error)
  }

  async #run(): Promise<void> {
    const { world } = this.#plane.transport
    let lostAt: number | undefined
    for (let failures = 0; !this.#finished; ) {
      const progress = this.#progress
      const ending = await this.#connectOnce()
      if (this.#finished) return
      if (this.#progress > progress) {
        failures = 0
        lostAt = undefined
      }
      lostAt ??= world.now()
      const error = ending === 'closed' ? new SandglassError('lost_contact') : ending.error
      if (isFinal(error)) return this.#fail(error)
      const budgetMs = this.#process === undefined ? Math.min(FIRST_CONTACT_MS, this.#options.reconnectMs) : this.#options.reconnectMs
      const delayMs = planReconnect(failures, world.now() - lostAt, budgetMs, world.random())
      if (delayMs === undefined) return this.#fail(error)
      failures += 1
      await sleep(world, delayMs, this.#stop.signal).catch(() => undefined)
    }
  }

  /** One socket from its opening to its end. Never rejects. */
  async #connectOnce(): Promise<Ending> {
    const { transport } = this.#plane
    const { world } = transport
    let pass: SessionPass
    try {
      pass = await sessionPass(this.#plane, this.#opening.type === 'terminal' ? 'terminal' : 'exec', this.#stop.signal)
    } catch (error) {
      return error instanceof SandglassError ? { error } : 'closed'
    }
    // Where the pass was given: a ticket is good at its own gateway.
    const place = transport.places.at(this.#plane.base)
    const over = Promise.withResolvers<Ending>()
    let opened = false
    let cancelSilence = world.timer(START_TIMEOUT_MS, () => over.resolve('closed'))
    const listen = (ms: number) => {
      cancelSilence()
      cancelSilence = world.timer(ms, () => over.resolve('closed'))
    }
    const socket = world.connect(
      {
        url: webSocketUrl(place + pathOf(this.#opening, this.#standing(), this.#size)),
        protocols: [WS_SUBPROTOCOL, ...pass.protocols],
        headers: pass.headers,
      },
      {
        open: () => {
          opened = true
          this.#socket = socket
          this.#send(this.#firstFrame())
        },
        message: (bytes) => {
          if (this.#socket !== socket) return
          if (this.#process !== undefined) listen(SILENCE_MS)
          const ending = this.#receive(bytes)
          if (ending !== undefined) over.resolve(ending)
        },
        close: (code, reason) => {
          const refusal = refusalOf(code, reason, transport.apiUrl)
          over.resolve(refusal === undefined ? 'closed' : { error: refusal })
        },
      },
    )
    const onStop = () => over.resolve('closed')
    this.#stop.signal.addEventListener('abort', onStop)
    const ending = await over.promise
    this.#stop.signal.removeEventListener('abort', onStop)
    cancelSilence()
    this.#socket = undefined
    this.input.detach()
    socket.close(NORMAL_CLOSE)
    if (ending === 'closed') transport.places.failed(place)
    if (opened || ending !== 'closed' || this.#finished) return ending
    const error = await refusedUpgrade(this.#plane, this.#stop.signal)
    return error === undefined ? 'closed' : { error }
  }

  /** What this connection begins with; from now on the server may send as much as that gives credit for. */
  #firstFrame(): ClientFrame {
    this.#creditLeft = Math.max(0, this.#options.windowBytes - this.stdout.buffered - this.stderr.buffered)
    return firstFrame(this.#opening, this.#standing())
  }

  #standing(): Standing {
    return {
      process: this.#process,
      stdout: this.#streams.stdout.offset,
      stderr: this.#streams.stderr.offset,
      writer: this.#writer,
      resumeInputAt: this.input.resumeAt,
      creditBytes: this.#creditLeft,
    }
  }

  /** @returns what ends this connection, if this message does */
  #receive(bytes: Uint8Array): Ending | undefined {
    try {
      const frame = parseServerFrame(bytes)
      if (frame.channel === 'credit') {
        this.#progress += 1
        this.input.grant(frame.bytes)
      } else if (frame.channel === 'status') return this.#status(frame.status)
      else this.#output(frame.channel, frame.bytes)
      return undefined
    } catch (error) {
      if (error instanceof SandglassError) return { error }
      if (error instanceof CodedError) return { error: errorOfCoded(error) }
      throw error
    }
  }

  #status(status: ServerStatus): Ending | undefined {
    switch (status.type) {
      case 'heartbeat':
        this.#progress += 1
        return undefined
      case 'started':
        this.#begin(status)
        return undefined
      case 'gap':
        this.#gap(status.stream, status.from, status.to)
        return undefined
      case 'exit':
        this.#exited = status.process
        this.#streams.stdout.end = status.process.stdout.end
        this.#streams.stderr.end = status.process.stderr.end
        this.#finishStreams()
        return undefined
      case 'error': {
        const error = errorOfStatus(status)
        const docs = docsOf(this.#plane.transport.apiUrl, error.code)
        return { error: new SandglassError(error.code, error.message, { requestId: status.request_id ?? undefined, docs, ...error.context }) }
      }
    }
  }

  #begin(started: Extract<ServerStatus, { type: 'started' }>): void {
    this.#process = started.process
    this.#startAt('stdout', started.stdout_offset)
    this.#startAt('stderr', started.stderr_offset)
    this.input.attach(
      { data: (bytes) => this.#send({ channel: 'stdin', bytes }), halfClose: () => this.#send({ channel: 'halfClose' }) },
      started.process.tty || this.#opening.type === 'terminal' ? started.process.stdin.accepted : (this.input.resumeAt ?? started.process.stdin.accepted),
      started.stdin_credit_bytes,
      started.process.stdin.open,
    )
    if (this.#size !== undefined) this.#send({ channel: 'resize', size: this.#size })
    this.#started.resolve(started.process)
  }

  /** The server names the offset of its first byte; what lies before it and did not come is a gap. */
  #startAt(name: StreamName, offset: number): void {
    const stream = this.#streams[name]
    if (offset < stream.offset)
      throw new SandglassError('malformed_frame', `The server went back to byte ${offset} of ${name}, of which ${stream.offset} were read.`)
    if (offset > stream.offset) this.#gap(name, stream.offset, offset)
  }

  #gap(name: StreamName, from: number, to: number): void {
    const stream = this.#streams[name]
    if (to <= stream.offset) return
    this.#hasGaps = true
    stream.queue.pushGap({ from: Math.max(from, stream.offset), to })
    stream.offset = to
    this.#finishStreams()
  }

  #output(name: StreamName, bytes: Uint8Array): void {
    if (this.#process === undefined) throw new SandglassError('malformed_frame', 'The server sent output before `started`.')
    if (bytes.byteLength > this.#creditLeft) throw new SandglassError('malformed_frame', 'The server sent more output than this client gave credit for.')
    const stream = this.#streams[name]
    this.#progress += 1
    this.#creditLeft -= bytes.byteLength
    stream.offset += bytes.byteLength
    stream.queue.push(bytes)
    this.#finishStreams()
  }

  #finishStreams(): void {
    for (const { queue, offset, end } of [this.#streams.stdout, this.#streams.stderr]) if (end !== undefined && offset >= end) queue.end()
    if (this.#exited === undefined || !this.stdout.finished || !this.stderr.finished) return
    this.#finished = true
    this.input.fail(new SandglassError('stdin_closed', 'The process has exited.'))
    this.#exit.resolve(this.#exited)
    this.#stop.abort()
  }

  #fail(error: unknown): void {
    if (this.#finished) return
    this.#finished = true
    this.stdout.fail(error)
    this.stderr.fail(error)
    this.input.fail(error)
    this.#started.reject(error)
    this.#exit.reject(error)
    this.#stop.abort()
  }

  /** Gives back what was read, in steps that are worth a frame. */
  #giveCredit(): void {
    if (this.#socket === undefined || this.#finished) return
    const room = this.#options.windowBytes - this.stdout.buffered - this.stderr.buffered - this.#creditLeft
    if (room < this.#options.windowBytes / 4) return
    this.#creditLeft += room
    this.#send({ channel: 'credit', bytes: room })
  }

  #send(frame: ClientFrame): void {
    this.#socket?.send(encodeClientFrame(frame))
  }
}
