/** A gate between the steps of several workers: closing it waits until each of them has finished its step. */
import { until } from './persist.ts'

export class Gate {
  #closed = false
  #inside = 0
  readonly #waiting = new Set<() => void>()

  /** Runs one step when the gate is open. */
  async step<T>(run: () => Promise<T>): Promise<T> {
    while (this.#closed) await new Promise<void>((resolve) => this.#waiting.add(resolve))
    this.#inside += 1
    try {
      return await run()
    } finally {
      this.#inside -= 1
    }
  }

  /** @throws Error when a step does not end within the limit */
  async close(limitMs: number): Promise<void> {
    this.#closed = true
    await until(limitMs, 'the steps under way ending', () => (this.#inside === 0 ? true : undefined))
  }

  open(): void {
    this.#closed = false
    for (const go of this.#waiting) go()
    this.#waiting.clear()
  }
}
