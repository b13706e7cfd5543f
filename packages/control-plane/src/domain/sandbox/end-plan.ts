/**
 * What to do with a sandbox when the runtime of its current generation turns out to be gone, or never came to be.
 *
 * Pure: the caller has locked the rows, and applies the answer in the same transaction.
 */
import { LIMITS, type SandboxStatus } from '@sandglass/contract'

/** Why the runtime of the current generation is no more. */
export type LossReason = 'start_failed' | 'start_refused' | 'start_timeout' | 'runtime_exited' | 'recovered' | 'host_restarted' | 'host_drained'

export type Loss = { readonly reason: LossReason; readonly detail: string | null }

export type LossPlan =
  | { readonly move: 'retry'; readonly retryAfterMs: number; readonly statusReason: string }
  | { readonly move: 'fail'; readonly statusReason: string; readonly createFailed: boolean }
  | { readonly move: 'none' }

const WORDS: Readonly<Record<LossReason, string>> = {
  start_failed: 'the runtime did not start',
  start_refused: 'the host refused the start',
  start_timeout: 'the runtime was not ready in time',
  runtime_exited: 'the runtime ended by itself',
  recovered: 'the host agent ended it while it recovered',
  host_restarted: 'the host was restarted',
  host_drained: 'an operator drained the host',
}

/** One line: a code, then a sentence. */
export function lossText(loss: Loss): string {
  return `${loss.reason}: ${loss.detail === null || loss.detail === '' ? WORDS[loss.reason] : loss.detail}`
}

/**
 * @param sandbox its state, and how many times it was placed
 * @param retryBaseMs the pause before the second attempt; it doubles
 */
export function planLoss(sandbox: { readonly observed: SandboxStatus; readonly startAttempts: number }, loss: Loss, retryBaseMs: number): LossPlan {
  const statusReason = lossText(loss)
  switch (sandbox.observed) {
    case 'assigned':
    case 'starting':
      // No fault of the start: it goes on elsewhere, whatever attempts it has had.
      if (loss.reason === 'host_drained') return { move: 'retry', retryAfterMs: 0, statusReason }
      if (sandbox.startAttempts < LIMITS.startAttempts) {
        return { move: 'retry', retryAfterMs: retryBaseMs * 2 ** (sandbox.startAttempts - 1), statusReason }
      }
      return { move: 'fail', statusReason, createFailed: true }
    case 'ready':
      return { move: 'fail', statusReason, createFailed: false }
    default:
      // Already left behind: its generation moved on, and only the release remains.
      return { move: 'none' }
  }
}
