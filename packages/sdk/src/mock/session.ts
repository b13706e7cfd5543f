/** One WebSocket of a mock: the frames of `sandglass.v1`, with credit. */
import { CodedError } from '@sandglass/contract/errors'
import { type ClientStatus, encodeServerFrame, parseClientFrame, type ServerStatus } from '@sandglass/contract/gateway-frames'
import { LIMITS } from '@sandglass/contract/limits'
import type { Socket, SocketHandlers } from '../world.ts'
import type { MockProcess } from './process.ts'

const BROKEN = 1006
const NORMAL = 1000

/** Starts a process, or finds it. @throws CodedError */
export type OpenProcess = (status: ClientStatus) => MockProcess

export class MockSocket implements Socket {
  readonly #handlers: SocketHandlers
  readonly #open: OpenProcess
  readonly #onClose: () => void
  #process: MockProcess | undefined
  #sent = { stdout: 0, stderr: 0 }
  #credit = 0
  #inputOffset = 0
  #writer = ''
  #isClosed = false
  #stop: () => void = () => undefined

  /** @param refusal what is told instead of anything else */
  constructor(handlers: SocketHandlers, open: OpenProcess, onClose: () => void, refusal?: CodedError) {
    this.#handlers = handlers
    this.#open = open
    this.#onClose = onClose
    queueMicrotask(() => {
      if (this.#isClosed) return
      handlers.open()
      if (refusal !== undefined) this.#refuse(refusal)
    })
  }

  send(bytes: Uint8Array): void {
    const copy = bytes.slice()
    queueMicrotask(() => this.#receive(copy))
  }

  close(code = NORMAL): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stop()
    this.#onClose()
    queueMicrotask(() => this.#handlers.close(code, ''))
  }

  /** As a network that breaks. */
  cut(): void {
    this.close(BROKEN)
  }

  #receive(bytes: Uint8Array): void {
    if (this.#isClosed) return
    try {
      const frame = parseClientFrame(bytes)
      if (frame.channel === 'status') this.#begin(frame.status)
      else if (frame.channel === 'credit') this.#credit += frame.bytes
      else if (frame.channel === 'stdin') {
        this.#process?.input(frame.bytes, this.#inputOffset, this.#writer)
        this.#inputOffset += frame.bytes.byteLength
        this.#handlers.message(encodeServerFrame({ channel: 'credit', bytes: frame.bytes.byteLength }))
      } else if (frame.channel === 'halfClose') this.#process?.closeInput()
      else if (frame.channel === 'signal') this.#process?.kill(frame.signal.signal)
      this.#pump()
    } catch (error) {
      this.#refuse(error instanceof CodedError ? error : new CodedError('internal', String(error)))
    }
  }

  #refuse(error: CodedError): void {
    const { errors, limit } = error.context
    const about = { ...(errors === undefined ? {} : { errors: [...errors] }), ...(limit === undefined ? {} : { limit: { ...limit } }) }
    this.#status({ type: 'error', code: error.code, detail: error.message, ...about })
    this.close()
  }

  #begin(status: ClientStatus): void {
    const process = this.#open(status)
    this.#process = process
    this.#credit = status.credit_bytes
    this.#inputOffset = (status.type === 'attach' ? status.stdin_offset : undefined) ?? process.inputBytes
    this.#writer = status.writer ?? ''
    if (status.type === 'attach') this.#sent = { stdout: status.since_stdout ?? 0, stderr: status.since_stderr ?? 0 }
    const { stdout, stderr } = this.#sent
    this.#status({ type: 'started', process: process.record(), stdout_offset: stdout, stderr_offset: stderr, stdin_credit_bytes: LIMITS.stdinCreditBytes })
    this.#stop = process.listen(() => this.#pump())
  }

  #status(status: ServerStatus): void {
    this.#handlers.message(encodeServerFrame({ channel: 'status', status }))
  }

  #pump(): void {
    const process = this.#process
    if (process === undefined || this.#isClosed) return
    for (const stream of ['stdout', 'stderr'] as const) {
      for (;;) {
        const part = process.bytes(stream, this.#sent[stream]).subarray(0, Math.min(this.#credit, LIMITS.frameBytes))
        if (part.byteLength === 0) break
        this.#credit -= part.byteLength
        this.#sent[stream] += part.byteLength
        this.#handlers.message(encodeServerFrame({ channel: stream, bytes: part }))
      }
    }
    if (process.running || this.#sent.stdout < process.bytes('stdout').byteLength || this.#sent.stderr < process.bytes('stderr').byteLength) return
    this.#stop()
    this.#process = undefined
    this.#status({ type: 'exit', process: process.record() })
  }
}
