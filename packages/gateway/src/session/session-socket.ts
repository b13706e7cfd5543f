/**
 * A session on its socket: carries out what the state machine decides.
 *
 * Output is read from the guest as much at a time as is there, and only when the client has credit and its socket is not behind, so a slow reader
 * costs a bounded amount of memory here and slows its process down. Input, signals and sizes each go their own way: no one waits behind
 * another, but input behind the sizes that came before it (stdin-queue.ts).
 */
import { CLOSE_CODE, type CodedError, encodeServerFrame, LIMITS, ProcessSchema, parserOf, randomBase32 } from '@sandglass/contract'
import type { WebSocket } from 'ws'
import type { Admitted } from '../auth/admission.ts'
import { aboutProcess, type OutputEvent, outputEvents } from '../exec/guest-output.ts'
import { lostContact } from '../hosts/host-answer.ts'
import { GoingAway } from '../problems/going-away.ts'
import { codedError } from '../problems/send-problem.ts'
import type { World } from '../world.ts'
import { openOutput } from './open-output.ts'
import { type Opening, sinceOf } from './opening.ts'
import { Session } from './session.ts'
import type { SessionAction, SessionEvent } from './session-events.ts'
import { StdinSender } from './stdin-sender.ts'
import type { Viewers } from './viewers.ts'
import type { Writer, Writers } from './writers.ts'

/** Bytes that may wait in the socket before no more output is read. */
const SOCKET_BYTES = 256 * 1024
/** How long input that was sent before the client left may take to be delivered. */
const LAST_INPUT_MS = 2_000
/** A client that must leave and does not answer the close is cut. */
const FORCED_CLOSE_MS = 1_000
const MISSED_HEARTBEATS = 2
/** Looks at a client that holds back a terminal which others look at too. Each asks it for an answer, the last of those without one cuts it. */
const HOLD_LOOKS = 3
const HOLD_LOOK_MS = LIMITS.terminalHoldMs / HOLD_LOOKS
const FORCED: ReadonlySet<number> = new Set([CLOSE_CODE.revoked, CLOSE_CODE.ended, CLOSE_CODE.goingAway, CLOSE_CODE.unauthenticated, CLOSE_CODE.takenOver])

const process = parserOf(ProcessSchema)

export type SessionSocketOptions = {
  readonly socket: WebSocket
  readonly admitted: Admitted
  readonly opening: Opening | undefined
  readonly requestId: string
  readonly writers: Writers
  readonly viewers: Viewers
  readonly world: World
}

export class SessionSocket {
  readonly #socket: WebSocket
  readonly #admitted: Admitted
  readonly #world: World
  readonly #session: Session
  readonly #writers: Writers
  readonly #viewers: Viewers
  readonly #writer: Writer = { end: (error) => this.#takenOver(error), isShared: false }
  #stopWriting: (() => void) | undefined
  #stopViewing: (() => void) | undefined
  readonly #stopOutput = new AbortController()
  readonly #stopInput = new AbortController()
  readonly #stdin: StdinSender
  readonly #closed = Promise.withResolvers<void>()
  #output: AsyncGenerator<readonly OutputEvent[]> | undefined
  #isPumping = false
  #missedHeartbeats = 0
  #unansweredLooks = 0
  #onInputDone: () => void = () => undefined
  readonly #timers = new Set<() => void>()

  constructor({ socket, admitted, opening, requestId, writers, viewers, world }: SessionSocketOptions) {
    this.#socket = socket
    this.#admitted = admitted
    this.#world = world
    this.#writers = writers
    this.#viewers = viewers
    this.#session = new Session({ opening, requestId, newKey: () => `gw-${randomBase32(world.random)}`, sharesInput: () => this.#writer.isShared })
    this.#stdin = new StdinSender({ guest: admitted.guest, signal: this.#stopInput.signal, tell: (event) => this.#apply(event) })
  }

  /** Resolves when the client is gone and its last input is delivered. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#admitted.session
    this.#listen()
    const onRevoked = () => this.#apply(signal.reason instanceof GoingAway ? { type: 'goingAway' } : { type: 'failed', error: codedError(signal.reason) })
    signal.addEventListener('abort', onRevoked)
    if (signal.aborted) onRevoked()
    this.#timer(LIMITS.sessionStartTimeoutMs, () => this.#apply({ type: 'startTimeout' }))
    this.#scheduleTick()
    await this.#closed.promise
    signal.removeEventListener('abort', onRevoked)
    this.#stopWriting?.()
    this.#stopViewing?.()
    this.#apply({ type: 'clientGone' })
    for (const cancel of this.#timers) cancel()
    await this.#lastInput()
    this.#stopInput.abort(lostContact())
  }

  #listen(): void {
    const socket = this.#socket
    socket.on('message', (data, isBinary) => {
      this.#heard()
      const bytes = Buffer.isBuffer(data) ? data : Buffer.alloc(0)
      this.#apply({ type: 'message', bytes, isBinary })
    })
    socket.on('pong', () => this.#heard())
    // A broken frame or a message that is too large: the library closes with its own code.
    socket.on('error', () => undefined)
    socket.once('close', () => this.#closed.resolve())
  }

  #heard(): void {
    this.#missedHeartbeats = 0
    this.#unansweredLooks = 0
  }

  #timer(ms: number, callback: () => void): void {
    const cancel = this.#world.timer(ms, () => {
      this.#timers.delete(cancel)
      callback()
    })
    this.#timers.add(cancel)
  }

  #scheduleTick(): void {
    this.#timer(LIMITS.sessionHeartbeatMs, () => {
      this.#missedHeartbeats += 1
      if (this.#missedHeartbeats > MISSED_HEARTBEATS) {
        this.#cutDead()
        return
      }
      if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping()
      this.#apply({ type: 'tick' })
      this.#scheduleTick()
    })
  }

  #cutDead(): void {
    this.#world.metrics.count('sandglass_gateway_sessions_dead_total')
    this.#socket.terminate()
  }

  #becomeViewer(): void {
    const { terminal, isOver } = this.#session
    if (terminal === undefined || isOver || this.#stopViewing !== undefined) return
    const name = `${this.#admitted.session.grant.sandboxId} ${terminal}`
    this.#stopViewing = this.#viewers.join(name)
    this.#watchHold(name)
  }

  /**
   * Everybody at a terminal waits for the slowest, which is no harm while that one lives: its person paused it. One whose line is dead is
   * found by its heartbeats only when the others have waited for half a minute, so while it holds them back it is asked more often.
   */
  #watchHold(terminal: string): void {
    this.#timer(HOLD_LOOK_MS, () => {
      const isHeldBack = this.#session.isHeldBack || this.#socket.bufferedAmount >= SOCKET_BYTES
      if (!isHeldBack || !this.#viewers.areSeveral(terminal)) this.#unansweredLooks = 0
      else {
        this.#unansweredLooks += 1
        if (this.#unansweredLooks === HOLD_LOOKS) return this.#cutDead()
        if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping()
      }
      this.#watchHold(terminal)
    })
  }

  #apply(event: SessionEvent): void {
    for (const action of this.#session.on(event)) this.#do(action)
    this.#becomeWriter()
    this.#becomeViewer()
    if (this.#session.isOver) this.#stopOutput.abort(lostContact())
    if (this.#session.isInputSent) this.#stdin.end()
    if (!this.#session.hasInput) this.#onInputDone()
    void this.#pump()
  }

  #becomeWriter(): void {
    const into = this.#session.typesInto
    if (into === undefined || this.#stopWriting !== undefined || this.#session.isOver) return
    this.#stopWriting = this.#writers.add(`${this.#admitted.session.grant.sandboxId} ${into.process}`, this.#writer, into.takesOver)
  }

  /** What it has typed and is not there yet stays away. */
  #takenOver(error: CodedError): void {
    this.#stopInput.abort(error)
    this.#apply({ type: 'failed', error })
  }

  #do(action: SessionAction): void {
    switch (action.do) {
      case 'send':
        this.#socket.send(action.frame.message ?? encodeServerFrame(action.frame), () => void this.#pump())
        return
      case 'open':
        void this.#open(action.opening)
        return
      case 'stdin':
        void this.#stdin.send(action.input)
        return
      case 'signal':
        void this.#control('signal', action.process, action.signal)
        return
      case 'resize':
        void this.#control('resize', action.process, action.size)
        return
      case 'close':
        this.#socket.close(action.code, action.reason)
        if (FORCED.has(action.code)) this.#timer(FORCED_CLOSE_MS, () => this.#socket.terminate())
    }
  }

  async #open(opening: Opening): Promise<void> {
    try {
      const answer = await openOutput(this.#admitted.guest, opening, this.#stopOutput.signal)
      this.#output = outputEvents(answer, sinceOf(opening), this.#world)
      await this.#pump()
    } catch (error) {
      this.#apply({ type: 'failed', error: codedError(error) })
    }
  }

  /** Reads output as long as it may be read. */
  async #pump(): Promise<void> {
    const output = this.#output
    if (this.#isPumping || output === undefined) return
    this.#isPumping = true
    try {
      while (this.#session.wantsOutput && this.#socket.bufferedAmount < SOCKET_BYTES) {
        const next = await output.next()
        if (next.done === true) throw lostContact()
        this.#apply({ type: 'output', events: next.value })
      }
    } catch (error) {
      this.#apply({ type: 'failed', error: codedError(aboutProcess(error, this.#session.processId)) })
    } finally {
      this.#isPumping = false
    }
    if (this.#session.isOver) await output.return(undefined)
  }

  async #control(control: 'signal' | 'resize', name: string, json: unknown): Promise<void> {
    const path = `/v1/processes/${name}/${control}`
    try {
      await this.#admitted.guest.json({ method: 'POST', path, json, isRepeatable: control === 'resize', signal: this.#stopInput.signal }, process)
      this.#apply({ type: 'controlDone', control })
    } catch (error) {
      this.#apply({ type: 'controlDone', control, error: codedError(error) })
    }
  }

  #lastInput(): Promise<void> {
    if (!this.#session.hasInput) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.#world.timer(LAST_INPUT_MS, resolve)
      this.#onInputDone = () => {
        cancel()
        resolve()
      }
    })
  }
}
