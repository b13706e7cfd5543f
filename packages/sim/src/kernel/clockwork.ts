/** The clocks of one machine: a monotonic one that runs a little fast or slow, and a wall clock that somebody may set. */
export class Clockwork {
  /** Seconds of this machine in a second of the world. */
  readonly rate: number
  #bootedAtMs: number
  #wallAheadMs = 0

  constructor(rate: number, bootedAtMs: number) {
    this.rate = rate
    this.#bootedAtMs = bootedAtMs
  }

  monotonicMs(worldMs: number): number {
    return 1_000 + (worldMs - this.#bootedAtMs) * this.rate
  }

  /** Unix time. */
  wallMs(worldMs: number): number {
    return EPOCH_MS + worldMs + this.#wallAheadMs
  }

  /** Of a duration on this machine. */
  worldMs(localMs: number): number {
    return localMs / this.rate
  }

  stepWall(byMs: number): void {
    this.#wallAheadMs += byMs
  }

  reboot(worldMs: number): void {
    this.#bootedAtMs = worldMs
  }
}

const EPOCH_MS = Date.UTC(2030, 0, 1)
