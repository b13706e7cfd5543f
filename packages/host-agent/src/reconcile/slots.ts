/** A bounded number of things in flight; the rest wait in order. */
export class Slots {
  readonly #count: number
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#count = count
    this.#free = count
  }

  get taken(): number {
    return this.#count - this.#free
  }

  /** How many wait for a slot. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** @returns gives the slot back, once @throws the signal's reason */
  async take(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted()
    if (this.#free > 0) this.#free -= 1
    else await this.#wait(signal)
    let held = true
    return () => {
      if (!held) return
      held = false
      const [next] = this.#waiting
      if (next === undefined) this.#free += 1
      else next()
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#waiting.delete(grant)
        signal?.removeEventListener('abort', onAbort)
      }
      const grant = (): void => {
        stop()
        resolve()
      }
      const onAbort = (): void => {
        stop()
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiting.add(grant)
    })
  }
}
