/** A map whose entries end at a time of the monotonic clock, and whose size is bounded: the oldest entry goes first. */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, { readonly value: V; readonly endsAtMs: number }>()
  readonly #nowMs: () => number
  readonly #maxEntries: number

  constructor(nowMs: () => number, maxEntries: number) {
    this.#nowMs = nowMs
    this.#maxEntries = maxEntries
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (entry.endsAtMs > this.#nowMs()) return entry.value
    this.#entries.delete(key)
    return undefined
  }

  /** When the entry ends; undefined when there is none. */
  endsAtMs(key: string): number | undefined {
    return this.get(key) === undefined ? undefined : this.#entries.get(key)?.endsAtMs
  }

  set(key: string, value: V, endsAtMs: number): void {
    this.#entries.delete(key)
    if (this.#entries.size >= this.#maxEntries) {
      const oldest = this.#entries.keys().next()
      if (oldest.done !== true) this.#entries.delete(oldest.value)
    }
    this.#entries.set(key, { value, endsAtMs })
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  deleteWhere(holds: (value: V) => boolean): void {
    for (const [key, { value }] of this.#entries) if (holds(value)) this.#entries.delete(key)
  }
}
