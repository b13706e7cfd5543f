/**
 * One WebSocket session, as a state machine. Pure: frames and events go in, actions come out; sockets, timers and requests are elsewhere.
 *
 * Phases: `waiting` for the client's first frame, `opening` while the guest is asked, `running` from `started` on, `over` when a close was
 * said. Whatever happens, the last thing a client gets is an exit, an error, or a close code that says why: never silence that could be
 * taken for success.
 */
import {
  CLOSE_CODE,
  type ClientFrame,
  type ClientStatus,
  CodedError,
  checkCommand,
  LIMITS,
  type Process,
  parseClientFrame,
  type ServerStatus,
  type SignalProcess,
  type TerminalSize,
} from '@sandglass/contract'
import type { OutputEvent } from '../exec/guest-output.ts'
import { processSegment } from '../http/process-segment.ts'
import { codedError } from '../problems/send-problem.ts'
import { closeCodeOf } from './close-code.ts'
import { type Opening, sinceOf } from './opening.ts'
import { type GatedFrame, OutputGate } from './output-gate.ts'
import type { SessionAction, SessionEvent } from './session-events.ts'
import { StdinQueue } from './stdin-queue.ts'

export type SessionOptions = {
  /** Given by the request itself; without one the first frame must be `start` or `attach`. */
  readonly opening: Opening | undefined
  readonly requestId: string
  /** For a process whose client gave no key. */
  readonly newKey: () => string
  /** Others type, or have typed, into the same terminal since this one began. */
  readonly sharesInput: () => boolean
}

/** The process is not there to be told, which its exit says better. */
const CONTROL_TOO_LATE: ReadonlySet<string> = new Set(['process_exited', 'process_not_found'])
const STDIN_CLOSED: ReadonlySet<string> = new Set(['stdin_closed', 'process_exited', 'process_not_found'])

const STDIN_CREDIT_STEP_BYTES = LIMITS.stdinCreditBytes / 4

export class Session {
  readonly #options: SessionOptions
  readonly #gate = new OutputGate()
  readonly #signals: SignalProcess[] = []
  #phase: 'waiting' | 'opening' | 'running' | 'over' = 'waiting'
  #opening: Opening | undefined
  #process: Process | undefined
  #stdin: StdinQueue | undefined
  #stdinCreditHeld = 0
  #halfCloseEarly = false
  #size: TerminalSize | undefined
  /** Counted by frames, so that input knows which of them it came after. */
  #sizes = { received: 0, underWay: 0 }
  #busy = { signal: false, resize: false }
  #isQuiet = true
  #actions: SessionAction[] = []

  constructor(options: SessionOptions) {
    this.#options = options
  }

  get isOver(): boolean {
    return this.#phase === 'over'
  }

  get processId(): string | undefined {
    return this.#process?.id
  }

  /** Watches a terminal, so that its own size says nothing about the terminal's. */
  get #isViewer(): boolean {
    return this.#opening?.type === 'attach' && this.#opening.mustBeTerminal && !this.#opening.wantsStdin
  }

  /** Set once it has started with a terminal that it may type into. */
  get typesInto(): { readonly process: string; readonly takesOver: boolean } | undefined {
    const [opening, process] = [this.#opening, this.#process]
    if (opening === undefined || process === undefined || !process.tty) return undefined
    if (opening.type === 'attach' && !opening.wantsStdin) return undefined
    return { process: process.id, takesOver: opening.type === 'attach' && opening.takesOver }
  }

  /** Set once it has started with a terminal, typing or only watching. */
  get terminal(): string | undefined {
    return this.#process?.tty === true ? this.#process.id : undefined
  }

  /** The client has to read before more output can go out. */
  get isHeldBack(): boolean {
    return this.#phase === 'running' && !this.#gate.isEmpty
  }

  /** The next piece of output may be read. */
  get wantsOutput(): boolean {
    return (this.#phase === 'opening' || this.#phase === 'running') && this.#gate.isEmpty
  }

  /** Input that the client has sent is still on its way. */
  get hasInput(): boolean {
    return this.#stdin !== undefined && !this.#stdin.isIdle
  }

  /** None of it waits here, and none will come. */
  get isInputSent(): boolean {
    return this.#phase === 'over' && (this.#stdin === undefined || this.#stdin.isSent)
  }

  /** What is to be done because of this event, in order. */
  on(event: SessionEvent): readonly SessionAction[] {
    this.#actions = []
    try {
      this.#handle(event)
      this.#flush()
    } catch (error) {
      this.#fail(codedError(error))
    }
    return this.#actions
  }

  #handle(event: SessionEvent): void {
    switch (event.type) {
      case 'stdinAccepted':
        this.#giveStdinCredit(this.#stdin?.accepted() ?? 0)
        return
      case 'stdinFlows':
        this.#stdin?.flow()
        return
      case 'stdinReceipted':
        this.#giveStdinCredit(this.#stdin?.receipted(event.bytes) ?? 0)
        return
      case 'stdinRefused': {
        const credit = this.#stdin?.discard() ?? 0
        // No credit then: what got none is what the client sends again.
        if (!STDIN_CLOSED.has(event.error.code)) throw event.error
        this.#giveStdinCredit(credit)
        return
      }
      case 'controlDone':
        this.#controlDone(event.control, event.error)
        return
      default:
    }
    if (this.#phase === 'over') return
    switch (event.type) {
      case 'message':
        this.#message(event.bytes, event.isBinary)
        return
      case 'output':
        for (const output of event.events) this.#output(output)
        return
      case 'failed':
        throw event.error
      case 'startTimeout':
        if (this.#phase === 'waiting') throw new CodedError('client_timeout', `No first frame came in ${LIMITS.sessionStartTimeoutMs} ms.`)
        return
      case 'tick':
        if (this.#isQuiet && this.#phase === 'running') this.#send({ channel: 'status', status: { type: 'heartbeat' } })
        this.#isQuiet = true
        return
      case 'goingAway':
        this.#close(CLOSE_CODE.goingAway, 'this gateway stops; connect again')
        return
      case 'clientGone':
        this.#phase = 'over'
    }
  }

  #message(bytes: Uint8Array, isBinary: boolean): void {
    if (!isBinary) throw new CodedError('malformed_frame', 'Frames are binary messages.')
    const frame = parseClientFrame(bytes)
    if (this.#phase === 'waiting') {
      const isFirstStatus = this.#begin(frame)
      if (isFirstStatus) return
    }
    this.#frame(frame)
  }

  /** @returns true when the frame itself was the beginning */
  #begin(frame: ClientFrame): boolean {
    if (this.#options.opening !== undefined) {
      this.#open(this.#options.opening)
      return false
    }
    if (frame.channel !== 'status') throw new CodedError('malformed_frame', 'The first frame must be a status frame, `start` or `attach`.')
    this.#gate.addCredit(frame.status.credit_bytes)
    this.#open(this.#openingOf(frame.status))
    return true
  }

  #openingOf(status: ClientStatus): Opening {
    if (status.type === 'start') {
      checkCommand(status.process)
      const process = { ...status.process, key: status.process.key ?? this.#options.newKey() }
      const killOnDisconnect = status.kill_on_disconnect ?? false
      return { type: 'start', processes: [process], killOnDisconnect, writer: this.#writerOf(status), mustBeTerminal: false }
    }
    return {
      type: 'attach',
      process: processSegment(status.process_id),
      since: { stdout: status.since_stdout ?? 0, stderr: status.since_stderr ?? 0 },
      wantsStdin: status.stdin ?? false,
      writer: this.#writerOf(status),
      stdinOffset: status.stdin_offset,
      takesOver: false,
      size: undefined,
      mustBeTerminal: false,
    }
  }

  #writerOf({ writer }: ClientStatus): string {
    return writer ?? this.#options.newKey()
  }

  #open(opening: Opening): void {
    this.#opening = opening
    this.#phase = 'opening'
    this.#actions.push({ do: 'open', opening })
  }

  #frame(frame: ClientFrame): void {
    switch (frame.channel) {
      case 'status':
        throw new CodedError('malformed_frame', 'Only the first frame may be a status frame.')
      case 'credit':
        this.#gate.addCredit(frame.bytes)
        return
      case 'stdin':
        if (this.#stdin === undefined) {
          if (frame.bytes.byteLength > 0) throw new CodedError('malformed_frame', 'Standard input came before `started` gave credit for it.')
          return
        }
        this.#giveStdinCredit(this.#stdin.push(frame.bytes))
        return
      case 'halfClose':
        this.#halfCloseEarly = true
        this.#stdin?.halfClose()
        return
      case 'resize':
        if (this.#isViewer) return
        this.#size = frame.size
        this.#sizes.received += 1
        this.#stdin?.sizesSent(this.#sizes.received)
        return
      case 'signal':
        if (this.#signals.length >= LIMITS.sessionSignals) {
          throw new CodedError('limit_exceeded', 'Too many signals wait to be delivered.', { limit: { name: 'sessionSignals', value: LIMITS.sessionSignals } })
        }
        this.#signals.push(frame.signal)
    }
  }

  #output(event: OutputEvent): void {
    switch (event.type) {
      case 'started':
        this.#started(event.process)
        return
      case 'data':
        this.#gate.pushData(event.stream, event.bytes)
        return
      case 'gap':
        this.#gate.pushStatus({ type: 'gap', stream: event.stream, from: event.from, to: event.to })
        return
      case 'heartbeat':
        return
      case 'exit':
        this.#gate.pushStatus({ type: 'exit', process: event.process })
        return
      case 'end':
        throw new CodedError('lost_contact')
    }
  }

  #started(process: Process): void {
    const opening = this.#opening
    if (opening === undefined) throw new Error('output came without an opening')
    if (opening.mustBeTerminal && !process.tty) throw new CodedError('not_a_terminal')
    this.#process = process
    this.#phase = 'running'
    const isOpen = process.stdin.open && (opening.type === 'start' || opening.wantsStdin)
    const offset = opening.type === 'attach' && !process.tty ? (opening.stdinOffset ?? process.stdin.accepted) : process.stdin.accepted
    this.#stdin = new StdinQueue({ offset, isTerminal: process.tty, isOpen, isShared: this.#options.sharesInput })
    this.#stdin.sizesSent(this.#sizes.received)
    if (this.#halfCloseEarly) this.#stdin.halfClose()
    const since = sinceOf(opening)
    const { creditBytes } = this.#stdin
    this.#gate.pushStatus({ type: 'started', process, stdout_offset: since.stdout, stderr_offset: since.stderr, stdin_credit_bytes: creditBytes })
  }

  #controlDone(control: 'signal' | 'resize', error: CodedError | undefined): void {
    this.#busy[control] = false
    // Also after a failure: input is not lost because a size was.
    if (control === 'resize') this.#stdin?.sizesSet(this.#sizes.underWay)
    // Contact that is lost shows in the output too, where it is told once.
    if (error !== undefined && !error.retryable && !CONTROL_TOO_LATE.has(error.code)) throw error
  }

  /** In steps that are worth a message of their own; the client has most of its credit still. */
  #giveStdinCredit(bytes: number): void {
    this.#stdinCreditHeld += bytes
    if (this.#stdinCreditHeld < STDIN_CREDIT_STEP_BYTES || this.#phase !== 'running') return
    this.#send({ channel: 'credit', bytes: this.#stdinCreditHeld })
    this.#stdinCreditHeld = 0
  }

  /** Everything that may go out now. */
  #flush(): void {
    for (const frame of this.#gate.take()) {
      if (this.#phase === 'over') return
      this.#send(frame)
      if (frame.channel === 'status' && frame.status.type === 'exit') this.#close(CLOSE_CODE.normal, 'exit')
    }
    if (this.#process === undefined) return
    const { id: process, tty: isTerminal } = this.#process
    const batch = this.#stdin?.take()
    if (batch !== undefined) {
      const writer = isTerminal ? undefined : this.#opening?.writer
      this.#actions.push({ do: 'stdin', input: { process, isTerminal, batch, writer } })
    }
    if (this.#size !== undefined && !this.#busy.resize && (this.#phase !== 'over' || this.hasInput)) {
      this.#actions.push({ do: 'resize', process, size: this.#size })
      this.#busy.resize = true
      this.#sizes.underWay = this.#sizes.received
      this.#size = undefined
    }
    if (this.#phase === 'over') return
    const signal = this.#busy.signal ? undefined : this.#signals.shift()
    if (signal !== undefined) {
      this.#actions.push({ do: 'signal', process, signal })
      this.#busy.signal = true
    }
  }

  #fail(error: CodedError): void {
    if (this.#phase === 'over') return
    const { errors, limit } = error.context
    const status: ServerStatus = {
      type: 'error',
      code: error.code,
      detail: error.message,
      request_id: this.#options.requestId,
      ...(errors === undefined ? {} : { errors: [...errors] }),
      ...(limit === undefined ? {} : { limit: { ...limit } }),
    }
    this.#send({ channel: 'status', status })
    this.#close(closeCodeOf(error), error.code)
  }

  #send(frame: GatedFrame): void {
    this.#isQuiet = false
    this.#actions.push({ do: 'send', frame })
  }

  #close(code: number, reason: string): void {
    this.#phase = 'over'
    this.#actions.push({ do: 'close', code, reason })
  }
}
