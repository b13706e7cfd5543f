/**
 * When to repeat a call, as a pure function.
 *
 * Only calls that are safe to repeat come here: reads, deletes, and calls that carry a key. Delays are exponential with full jitter, so that
 * clients which failed together do not return together; a server's `Retry-After` is a floor under them. The number of attempts is
 * bounded, and so is the wait: a server that asks for more than `maxRetryAfterMs` gets no repeat, its error is shown at once.
 */
import type { SandglassError } from './error.ts'

export type RetryPolicy = {
  /** Attempts altogether, the first included. */
  readonly attempts: number
  readonly baseDelayMs: number
  readonly maxDelayMs: number
  readonly maxRetryAfterMs: number
}

export const RETRY_POLICY: RetryPolicy = { attempts: 5, baseDelayMs: 100, maxDelayMs: 2_000, maxRetryAfterMs: 30_000 }

/** For commands, which go on inside while a gateway or host agent restarts: long enough for that. */
export const PATIENT_POLICY: RetryPolicy = { ...RETRY_POLICY, attempts: 12 }

const REPEATED: ReadonlySet<string> = new Set([
  'unavailable',
  'overloaded',
  'rate_limited',
  'unschedulable',
  'too_many_open_files',
  'lost_contact',
  'idempotency_in_progress',
])

/**
 * @param attempt how many attempts have failed, 1 or more
 * @param random 0 ≤ x < 1
 * @returns milliseconds to wait before the next attempt, or undefined: show the error
 */
export function planRetry(error: SandglassError, attempt: number, random: number, policy: RetryPolicy = RETRY_POLICY): number | undefined {
  if (!REPEATED.has(error.code) || attempt >= policy.attempts) return undefined
  const asked = (error.retryAfterSeconds ?? 0) * 1000
  if (asked > policy.maxRetryAfterMs) return undefined
  const ceiling = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (attempt - 1))
  return asked + random * ceiling
}
