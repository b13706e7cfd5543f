/**
 * The warden of a simulated machine (native/warden): it keeps the deadline of the lease and stops everything of sandboxes when that has passed, whatever
 * becomes of the agent. Thawed only when the deadline moves.
 */
import type { World } from '../kernel/world.ts'

/** What it stops and lets go on. */
export type Frozen = { freeze(): void; thaw(): void }

export class SimulatedWarden {
  readonly #world: World
  readonly #runtimes: Frozen
  readonly #onMachine: (worldMs: number) => number
  readonly #worldMs: (localMs: number) => number
  #deadlineMs = 0
  #frozen = true
  #boot = 0

  constructor(
    world: World,
    { runtimes, onMachine, worldMs }: { runtimes: Frozen; onMachine: (worldMs: number) => number; worldMs: (localMs: number) => number },
  ) {
    this.#world = world
    this.#runtimes = runtimes
    this.#onMachine = onMachine
    this.#worldMs = worldMs
  }

  get frozen(): boolean {
    return this.#frozen
  }

  /** On its machine's monotonic clock, milliseconds. */
  get nowMs(): number {
    return this.#onMachine(this.#world.nowMs)
  }

  leftMs(): number {
    return this.#deadlineMs - this.nowMs
  }

  /** guard: launch.gate */
  get isOpen(): boolean {
    return !this.#frozen && this.leftMs() > 0
  }

  /** A renewal that was sent at that moment has been answered. */
  renewed(sentMs: number, goodForMs: number): void {
    const deadlineMs = sentMs + goodForMs
    if (deadlineMs <= this.#deadlineMs || deadlineMs <= this.nowMs) return
    this.#deadlineMs = deadlineMs
    if (this.#frozen) {
      this.#frozen = false
      this.#runtimes.thaw()
    }
    this.#watch()
  }

  /** The machine has booted: its clock begins anew, and nothing is renewed. */
  reset(): void {
    this.#boot += 1
    this.#deadlineMs = 0
    this.#frozen = true
  }

  #watch(): void {
    const boot = this.#boot
    const deadlineMs = this.#deadlineMs
    // The freezer takes a moment, and may take long.
    const lateMs = this.#world.random.chance(0.1) ? this.#world.random.between(0, 4_900) : this.#world.random.between(0, 20)
    this.#world.at(this.#worldMs(this.leftMs()) + lateMs, undefined, 'a deadline', () => {
      if (this.#boot !== boot || this.#deadlineMs !== deadlineMs || this.#frozen) return
      this.#frozen = true
      this.#runtimes.freeze()
    })
  }
}
