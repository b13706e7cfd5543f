/** Memory that all answers of a gateway which are collected before they are sent may use together. */
export class BufferBudget {
  readonly #totalBytes: number
  #usedBytes = 0

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** @returns how many of the bytes may be kept */
  take(bytes: number): number {
    const taken = Math.min(bytes, this.#totalBytes - this.#usedBytes)
    this.#usedBytes += taken
    return taken
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes
  }
}
