/**
 * The loop around a reconciler: it is never told what changed. It looks when it is woken, when its own next deadline comes, and at least once per period;
 * wake-ups while it runs make it run once more. A failure is logged and counted, and the next look comes after the period.
 */
import type { Log } from '../context.ts'

export type Outcome = {
  /** What it did, in its own unit. */
  readonly actions: number
  /** There is more to do at once, or something falls due sooner than the period. */
  readonly nextInMs?: number | undefined
}

export type ReconcilerStatus = {
  readonly name: string
  readonly period_ms: number
  readonly running: boolean
  readonly runs: number
  readonly actions: number
  readonly failures: number
  /** Time spent in runs. */
  readonly run_seconds: number
  readonly last_run_at: string | null
  readonly last_success_at: string | null
  readonly last_duration_ms: number | null
  readonly last_error: string | null
}

export type ReconcilerOptions = {
  readonly name: string
  readonly periodMs: number
  readonly work: () => Promise<Outcome>
  readonly log: Log
  readonly monotonicMs: () => number
  /** How long after a wake-up it looks, so that one look answers many. Default: at once. */
  readonly gatherMs?: number
}

export class Reconciler {
  readonly name: string
  readonly #options: ReconcilerOptions
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #again = false
  #gathering = false
  #stopped = true
  #runs = 0
  #actions = 0
  #failures = 0
  #runSeconds = 0
  #lastRunAt: Date | null = null
  #lastSuccessAt: Date | null = null
  #lastDurationMs: number | null = null
  #lastError: string | null = null

  constructor(options: ReconcilerOptions) {
    this.name = options.name
    this.#options = options
  }

  start(): void {
    this.#stopped = false
    this.wake()
  }

  wake(): void {
    if (this.#stopped || this.#gathering) return
    const { gatherMs = 0 } = this.#options
    if (this.#running !== undefined) {
      this.#again = true
    } else if (gatherMs === 0) {
      this.#run()
    } else {
      clearTimeout(this.#timer)
      this.#gathering = true
      this.#timer = setTimeout(() => this.#run(), gatherMs)
    }
  }

  #run(): void {
    if (this.#stopped || this.#running !== undefined) return
    this.#gathering = false
    clearTimeout(this.#timer)
    this.#running = this.#runOnce().finally(() => {
      this.#running = undefined
      if (!this.#again) return
      this.#again = false
      this.wake()
    })
  }

  /** Takes no new work and waits for the run at hand. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  status(): ReconcilerStatus {
    return {
      name: this.name,
      period_ms: this.#options.periodMs,
      running: this.#running !== undefined,
      runs: this.#runs,
      actions: this.#actions,
      failures: this.#failures,
      run_seconds: this.#runSeconds,
      last_run_at: this.#lastRunAt?.toISOString() ?? null,
      last_success_at: this.#lastSuccessAt?.toISOString() ?? null,
      last_duration_ms: this.#lastDurationMs,
      last_error: this.#lastError,
    }
  }

  async #runOnce(): Promise<void> {
    const { periodMs, work, log, monotonicMs } = this.#options
    const began = monotonicMs()
    let nextInMs = periodMs
    try {
      const outcome = await work()
      this.#actions += outcome.actions
      this.#lastError = null
      nextInMs = Math.min(periodMs, Math.max(0, outcome.nextInMs ?? periodMs))
    } catch (error) {
      this.#failures += 1
      // While the database is away every look fails: the first failure in a row is the one to read.
      log[this.#lastError === null ? 'warn' : 'debug']({ reconciler: this.name, err: error }, 'reconciler failed; it looks again after its period')
      this.#lastError = error instanceof Error ? error.message : String(error)
    }
    const tookMs = monotonicMs() - began
    this.#runs += 1
    this.#runSeconds += tookMs / 1_000
    this.#lastRunAt = new Date()
    if (this.#lastError === null) this.#lastSuccessAt = this.#lastRunAt
    this.#lastDurationMs = Math.round(tookMs * 10) / 10
    if (!this.#stopped) this.#timer = setTimeout(() => this.#run(), nextInMs)
  }
}
