/** Time of a mock: it passes as it does, and `advance` lets more of it pass at once. */

type Timer = { readonly dueMs: number; readonly callback: () => void; handle: ReturnType<typeof setTimeout> }

export class MockClock {
  #aheadMs = 0
  readonly #timers = new Set<Timer>()

  /** Milliseconds since 1970. */
  get nowMs(): number {
    return Date.now() + this.#aheadMs
  }

  timer(ms: number, callback: () => void): () => void {
    const timer: Timer = { dueMs: this.nowMs + ms, callback, handle: setTimeout(() => this.#fire(timer), ms) }
    this.#timers.add(timer)
    return () => this.#drop(timer)
  }

  /** Fires, in order, whatever becomes due. */
  advance(ms: number): void {
    this.#aheadMs += ms
    const due = [...this.#timers].filter((timer) => timer.dueMs <= this.nowMs).sort((a, b) => a.dueMs - b.dueMs)
    for (const timer of due) if (this.#timers.has(timer)) this.#fire(timer)
    for (const timer of this.#timers) {
      clearTimeout(timer.handle)
      timer.handle = setTimeout(() => this.#fire(timer), timer.dueMs - this.nowMs)
    }
  }

  #fire(timer: Timer): void {
    this.#drop(timer)
    timer.callback()
  }

  #drop(timer: Timer): void {
    clearTimeout(timer.handle)
    this.#timers.delete(timer)
  }
}
