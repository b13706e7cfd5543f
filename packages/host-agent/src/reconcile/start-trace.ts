/**
 * A start as spans of its create's trace: the whole, from the order heard to how it went, with a child for each phase that was timed.
 *
 * It is told once, when the start is over, from what the stopwatches saw. So a span is always of the one attempt that it names by its generation: an
 * order that is delivered again and starts nothing has none, and neither has a start that the end of this agent cuts off, since what becomes of that
 * is decided by the next agent.
 */
import type { ErrorCode } from '@sandglass/contract'
import type { Tracing } from '@sandglass/telemetry'
import type { Clock } from '../clock.ts'
import type { OnPhase, Phase } from '../lifecycle/stopwatch.ts'
import type { StartOrder } from './pending-work.ts'

/** `stopped`: by an end order. */
export type StartOutcome = { readonly outcome: 'ready' | 'stopped' } | { readonly outcome: 'refused' | 'failed'; readonly code: ErrorCode }

export type StartTraceWorld = { readonly tracing: Tracing; readonly clock: Clock }

export class StartTrace {
  readonly #world: StartTraceWorld
  readonly #order: StartOrder
  readonly #phases: Phase[] = []
  #pool: 'hit' | 'miss' | 'none' | undefined
  #told = false

  constructor(world: StartTraceWorld, order: StartOrder) {
    this.#world = world
    this.#order = order
  }

  readonly onPhase: OnPhase = (phase) => void this.#phases.push(phase)

  /** What the start gets from a pool. */
  picked(pool: 'hit' | 'miss' | 'none'): void {
    this.#pool = pool
  }

  /** The first time counts. */
  end(how: StartOutcome): void {
    const { tracing, clock } = this.#world
    if (!tracing.isOn || this.#told) return
    this.#told = true
    const { ticket, traceparent, heardAtMs } = this.#order
    const endedMs = clock.nowMs()
    const wallOf = wallTimes(clock, endedMs)
    const error = 'code' in how ? how.code : undefined
    const whole = tracing.open('sandbox.start', {
      kind: 'consumer',
      parent: traceparent,
      attributes: {
        'sandglass.sandbox': ticket.sandbox,
        'sandglass.generation': ticket.generation,
        'sandglass.outcome': how.outcome,
        ...(this.#pool === undefined ? {} : { 'sandglass.pool': this.#pool }),
        ...(error === undefined ? {} : { 'error.type': error }),
      },
      startedAtMs: wallOf(heardAtMs),
    })
    for (const { name, beganMs, endedMs: phaseEndedMs } of this.#phases) {
      const phase = tracing.open(`sandbox.start.${name}`, { kind: 'internal', parent: whole.traceparent, startedAtMs: wallOf(beganMs) })
      phase.end({ endedAtMs: wallOf(phaseEndedMs) })
    }
    whole.end({ error, endedAtMs: wallOf(endedMs) })
  }
}

/** All times of a trace by one reading of the wall clock, so that a step of it does not tear phases apart. */
function wallTimes(clock: Clock, nowMs: number): (ms: number) => number {
  const aheadMs = clock.wallMs() - nowMs
  return (ms) => ms + aheadMs
}
