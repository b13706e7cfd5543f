/**
 * When pools are not refilled: while sandboxes are being started or get their first commands, which want the CPUs that a boot would take. Pure.
 *
 * Such work goes on as long as one piece of it follows the other within REFILL_QUIET_MS, a cold start is in flight, or a first command that began a moment
 * ago is. It holds refilling back from its first moment until it is quiet, but for no longer than REFILL_HOLD_MAX_MS: a burst is served before a member is
 * replaced, and where the work never ends, pools are filled beside it.
 */

export const REFILL_QUIET_MS = 100
export const REFILL_HOLD_MAX_MS = 5_000
/** A command that is in flight for longer may be for hours. */
export const COMMAND_YOUNG_MS = 1_000

/** The newest stretch of work without a pause, on one clock. */
export type Work = { readonly sinceMs: number; readonly lastMs: number }

/** Something began or ended now, or something that began earlier `goesOn`. */
export function workAfter(before: Work | undefined, nowMs: number, goesOn = false): Work {
  const hasNoPause = before !== undefined && (goesOn || nowMs - before.lastMs < REFILL_QUIET_MS)
  return { sinceMs: hasNoPause ? before.sinceMs : nowMs, lastMs: nowMs }
}

/** @returns until when pools are left as they are, if nothing else begins; in the past when they are not */
export const refillHeldUntilMs = (work: Work | undefined): number =>
  work === undefined ? Number.NEGATIVE_INFINITY : Math.min(work.lastMs + REFILL_QUIET_MS, work.sinceMs + REFILL_HOLD_MAX_MS)
