/**
 * What this control plane's observer saw last of the leases, for those who ask how long one lasts. A route must end before its host can be fenced, and the
 * database's clock, by which it is told what a lease has left, may be set back. What was seen is on this process's monotonic clock: a lease was renewed behind
 * the question of the last read that showed it otherwise.
 */
import { type FenceMemory, type LeaseSeen, renewedBehindMs } from '../domain/host/fencing.ts'

/** Milliseconds that a lease has left at least; undefined: nothing was seen that says so. */
export type LeaseLeft = (lease: LeaseSeen, leaseMs: number) => number | undefined

export class LeaseSightings {
  readonly #monotonicMs: () => number
  memory: FenceMemory | undefined

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Of leases that are read behind this call. */
  measure(): LeaseLeft {
    const { memory } = this
    return (lease, leaseMs) => {
      const behindMs = memory === undefined ? undefined : renewedBehindMs(memory, lease)
      return behindMs === undefined ? undefined : Math.floor(behindMs + leaseMs - this.#monotonicMs())
    }
  }
}
