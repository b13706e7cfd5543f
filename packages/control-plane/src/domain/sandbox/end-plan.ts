/**
 * What to do with a sandbox when the runtime of its current generation turns out to be gone, or never came to be.
 *
 * Pure: the caller has locked the rows, and applies the answer in the same transaction.
 */
import { LIMITS, type RestartPolicy, type SandboxStatus } from '@sandglass/contract'

/** Why the runtime of the current generation is no more. */
export type LossReason = 'start_failed' | 'start_refused' | 'start_timeout' | 'runtime_exited' | 'recovered' | 'host_restarted' | 'host_lost' | 'host_drained'

export type Loss = { readonly reason: LossReason; readonly detail: string | null }

export type LossPlan =
  | { readonly move: 'retry'; readonly retryAfterMs: number; readonly statusReason: string; readonly startAttempts: number }
  | { readonly move: 'restart'; readonly retryAfterMs: number; readonly statusReason: string; readonly restarts: number }
  | { readonly move: 'fail'; readonly statusReason: string; readonly startFailed: boolean }
  | { readonly move: 'none' }

/** Pauses before the second attempt of a start and before the first restart of a row, milliseconds; both double. */
export type Pauses = { readonly retryBaseMs: number; readonly restartBaseMs: number }

const WORDS: Readonly<Record<LossReason, string>> = {
  start_failed: 'the runtime did not start',
  start_refused: 'the host refused the start',
  start_timeout: 'the runtime was not ready in time',
  runtime_exited: 'the runtime ended by itself',
  recovered: 'the host agent ended it while it recovered',
  host_restarted: 'the host was restarted',
  host_lost: 'its host was not heard of for too long, and was fenced',
  host_drained: 'an operator drained the host',
}

/** Losses that are the host's doing. What the guest did to itself it would do again. */
const HOST_LOSSES: readonly LossReason[] = ['recovered', 'host_restarted', 'host_lost', 'host_drained']

/** One line: a code, then a sentence. */
export function lossText(loss: Loss): string {
  return `${loss.reason}: ${loss.detail === null || loss.detail === '' ? WORDS[loss.reason] : loss.detail}`
}

export type LostSandbox = {
  readonly observed: SandboxStatus
  /** How many times this run was placed, drains aside. */
  readonly startAttempts: number
  readonly restartPolicy: RestartPolicy
  /** Restarts by policy in a row. */
  readonly restarts: number
}

export function planLoss(sandbox: LostSandbox, loss: Loss, pauses: Pauses): LossPlan {
  const statusReason = lossText(loss)
  switch (sandbox.observed) {
    case 'assigned':
    case 'starting': {
      const { startAttempts } = sandbox
      // No fault of the start: it goes on elsewhere, whatever attempts it has had, and this was none of them.
      if (loss.reason === 'host_drained') return { move: 'retry', retryAfterMs: 0, statusReason, startAttempts: startAttempts - 1 }
      if (startAttempts < LIMITS.startAttempts) {
        return { move: 'retry', retryAfterMs: baseAfter(loss, pauses.retryBaseMs) * 2 ** (startAttempts - 1), statusReason, startAttempts }
      }
      // A restart that does not start is one of its row: the next one pauses for longer, and the row has one end.
      if (sandbox.restarts > 0) return nextOfRow(sandbox.restarts, statusReason, { baseMs: baseAfter(loss, pauses.restartBaseMs), startFailed: true })
      return { move: 'fail', statusReason, startFailed: true }
    }
    case 'ready':
      return planRestart(sandbox, loss, pauses.restartBaseMs)
    default:
      // Already left behind: its generation moved on, and only the release remains.
      return { move: 'none' }
  }
}

/** A runtime that ends again and again costs a start each time, so pauses double and a row of restarts comes to an end. */
function planRestart({ restartPolicy, restarts }: LostSandbox, loss: Loss, baseMs: number): LossPlan {
  const statusReason = lossText(loss)
  if (!wantsRestart(restartPolicy, loss.reason)) return { move: 'fail', statusReason, startFailed: false }
  // Nothing of its own ended it, so it waits for nothing and uses nothing up.
  if (loss.reason === 'host_drained') return { move: 'restart', retryAfterMs: 0, statusReason, restarts }
  return nextOfRow(restarts, statusReason, { baseMs: baseAfter(loss, baseMs), startFailed: false })
}

/** Whoever was on a lost host has waited for its fence. It counts in the row all the same: what takes its hosts down with it comes to an end. */
const baseAfter = (loss: Loss, baseMs: number): number => (loss.reason === 'host_lost' ? 0 : baseMs)

function nextOfRow(restarts: number, statusReason: string, { baseMs, startFailed }: { readonly baseMs: number; readonly startFailed: boolean }): LossPlan {
  if (restarts >= LIMITS.restartsInARow) {
    const spent = `restarts_used_up: it was restarted ${restarts} times in a row and ${startFailed ? 'did not start' : 'ended again'} (${statusReason})`
    return { move: 'fail', statusReason: spent, startFailed }
  }
  return { move: 'restart', retryAfterMs: baseMs * 2 ** restarts, statusReason, restarts: restarts + 1 }
}

/** Whether one that was ready begins again, elsewhere and in a new generation; else it fails, and says why. */
export function wantsRestart(policy: RestartPolicy, reason: LossReason): boolean {
  switch (policy) {
    case 'never':
      return false
    case 'on_host_loss':
      return HOST_LOSSES.includes(reason)
    case 'always':
      return true
  }
}
