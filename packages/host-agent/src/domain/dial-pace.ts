/**
 * How often the guest of one channel may dial. A guest agent dials once after each lost session; code inside that dials in a loop would
 * otherwise decide how much this host writes to its log and how often it looks at the runtime. Pure.
 */
import { LIMITS } from '@sandglass/contract'

export type DialPace = { readonly left: number; readonly atMs: number }

export function freshPace(nowMs: number): DialPace {
  return { left: LIMITS.guestDialBurst, atMs: nowMs }
}

/** The pace after one more dial, and whether that one is heard. */
export function paceDial(pace: DialPace, nowMs: number): { readonly pace: DialPace; readonly heard: boolean } {
  const left = Math.min(LIMITS.guestDialBurst, pace.left + (nowMs - pace.atMs) / LIMITS.guestDialEveryMs)
  if (left < 1) return { pace: { left, atMs: nowMs }, heard: false }
  return { pace: { left: left - 1, atMs: nowMs }, heard: true }
}
