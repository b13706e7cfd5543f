/** Waits between attempts: doubled each time up to a bound, spread by chance so that many hosts do not return at once. */
import { LIMITS } from '@sandglass/contract'
import type { Clock } from '../clock.ts'

const FIRST_MS = 100

export type Backoff = { wait(signal: AbortSignal): Promise<void>; reset(): void }

/** @param chance in [0, 1) */
export function backoff(clock: Clock, chance: () => number): Backoff {
  let nextMs = FIRST_MS
  return {
    reset: () => {
      nextMs = FIRST_MS
    },
    async wait(signal) {
      const ms = nextMs * (0.5 + chance())
      nextMs = Math.min(LIMITS.hostBackoffMaxMs, nextMs * 2)
      await clock.wait(ms, signal)
    },
  }
}
