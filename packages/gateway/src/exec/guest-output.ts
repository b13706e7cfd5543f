/**
 * The frame stream of a guest, checked.
 *
 * It begins with `started`; the bytes of each stream are gapless except where a gap is declared; it is over only with `exit`, `end` or
 * `error`. A guest that breaks this, falls silent or stops early is `lost_contact`, never a success.
 */
import { CodedError, GuestFrameDecoder, LIMITS, type Process } from '@sandglass/contract'
import { type HostAnswer, lostContact } from '../hosts/host-answer.ts'
import { nextBefore } from '../hosts/steady-body.ts'
import { isProcessId } from '../http/process-segment.ts'
import { upstreamError } from '../problems/guest-problem.ts'
import type { World } from '../world.ts'

export type StreamName = 'stdout' | 'stderr'

export type OutputEvent =
  | { readonly type: 'started'; readonly process: Process }
  | { readonly type: 'data'; readonly stream: StreamName; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly type: 'gap'; readonly stream: StreamName; readonly from: number; readonly to: number }
  | { readonly type: 'heartbeat' }
  | { readonly type: 'exit'; readonly process: Process }
  | { readonly type: 'end' }

export type Offsets = Readonly<Record<StreamName, number>>

/** The guest sends a heartbeat for each period of silence; this many missing means that it is gone. */
const SILENT_PERIODS = 3

const broken = (detail: string) => new CodedError('lost_contact', `The sandbox broke the protocol of output: ${detail}.`)
const fellSilent = () => broken('nothing came for too long')

/** Checks frames in their order. */
class OutputCheck {
  readonly #next: { stdout: number; stderr: number }
  readonly #decoder = new GuestFrameDecoder()
  #phase: 'new' | 'running' | 'over' = 'new'

  constructor(since: Offsets) {
    this.#next = { ...since }
  }

  get isOver(): boolean {
    return this.#phase === 'over'
  }

  *push(chunk: Uint8Array): Generator<OutputEvent> {
    for (const frame of this.#decoder.push(chunk)) {
      if (this.#phase === 'over') throw broken('something follows the end')
      if (frame.stream !== 'status') {
        this.#requireStarted()
        this.#advance(frame.stream, frame.offset, frame.offset + frame.bytes.byteLength)
        if (frame.bytes.byteLength > 0) yield { type: 'data', stream: frame.stream, offset: frame.offset, bytes: frame.bytes }
        continue
      }
      const { status } = frame
      if (status.type === 'error') throw upstreamError('guest', status.code, status.detail)
      if (status.type === 'started') {
        if (this.#phase !== 'new') throw broken('it started twice')
        if (!isProcessId(status.process.id)) throw broken('the id of the process is not one')
        this.#phase = 'running'
        yield status
        continue
      }
      this.#requireStarted()
      if (status.type === 'gap') {
        if (status.to < status.from) throw broken('a gap is negative')
        this.#advance(status.stream, status.from, status.to)
        yield status
      } else if (status.type === 'heartbeat') {
        yield status
      } else {
        this.#phase = 'over'
        yield status.type === 'exit' ? status : { type: 'end' }
      }
    }
  }

  #requireStarted(): void {
    if (this.#phase === 'new') throw broken('it did not begin with `started`')
  }

  #advance(stream: StreamName, from: number, to: number): void {
    if (from !== this.#next[stream]) throw broken(`${stream} jumps from ${this.#next[stream]} to ${from}`)
    if (!Number.isSafeInteger(to)) throw broken('an offset is too large')
    this.#next[stream] = to
  }
}

/**
 * All that has come, at least one event at a time. Reads on only when the consumer asks, so that its slowness reaches the process.
 * @throws CodedError `lost_contact`, or what the guest says in an `error` frame; what came before it is given out first
 */
export async function* outputEvents(answer: HostAnswer, since: Offsets, world: World): AsyncGenerator<readonly OutputEvent[]> {
  const check = new OutputCheck(since)
  try {
    while (!check.isOver) {
      const chunks = await nextBefore(answer, world, SILENT_PERIODS * LIMITS.sessionHeartbeatMs, fellSilent)
      if (chunks === undefined) throw lostContact()
      const { events, failure } = eventsOf(check, chunks)
      // The result is known; how the stream ends is of no more interest.
      if (check.isOver) answer.leave(world)
      if (events.length > 0) yield events
      if (failure !== undefined) throw failure.error
    }
  } finally {
    answer.cancel()
  }
}

type Events = { readonly events: readonly OutputEvent[]; readonly failure: { readonly error: unknown } | undefined }

function eventsOf(check: OutputCheck, chunks: readonly Uint8Array[]): Events {
  const events: OutputEvent[] = []
  try {
    for (const chunk of chunks) for (const event of checkedPush(check, chunk)) events.push(event)
  } catch (error) {
    // Whatever follows the end is of no interest either.
    return { events, failure: check.isOver ? undefined : { error } }
  }
  return { events, failure: undefined }
}

function* checkedPush(check: OutputCheck, chunk: Uint8Array): Generator<OutputEvent> {
  try {
    yield* check.push(chunk)
  } catch (error) {
    if (error instanceof CodedError && error.code === 'malformed_frame') throw broken('a frame is malformed')
    throw error
  }
}

/** The same error, naming the process that it is about, so that the client can come back to it. */
export function aboutProcess(error: unknown, processId: string | undefined): unknown {
  if (!(error instanceof CodedError) || error.code !== 'lost_contact' || processId === undefined) return error
  return new CodedError('lost_contact', `${error.message} The process is ${processId}; attach to it to learn how it goes on.`, error.context)
}
