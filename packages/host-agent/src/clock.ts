/**
 * Durations on the monotonic clock of this process: a duration is measured by one party alone, and no decision compares the wall clocks of two
 * machines. Passed in, so that tests can own time.
 */
import { setTimeout as delay } from 'node:timers/promises'

export type Clock = {
  /** Milliseconds since some moment; never steps back. */
  nowMs(): number
  /** The machine's wall clock, for what people read; decides nothing. */
  wallMs(): number
  /** Resolves after the time, or rejects with the signal's reason. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  async wait(ms, signal) {
    signal?.throwIfAborted()
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal })
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    }
  },
}
