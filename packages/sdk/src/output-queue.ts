/**
 * Bytes between a connection and their reader. Holds no more than the credit that was given, because the server sends no more.
 * One reader at a time. Gaps and the end keep their place among the bytes.
 */

/** Bytes that the server no longer had: offsets `from` ≤ x < `to` of the stream. */
export type Gap = { readonly from: number; readonly to: number }

export type Taken = { readonly type: 'bytes'; readonly bytes: Uint8Array } | { readonly type: 'gap'; readonly gap: Gap } | { readonly type: 'end' }

export class OutputQueue {
  readonly #onTaken: (bytes: number) => void
  readonly #items: Taken[] = []
  #waiting: PromiseWithResolvers<void> | undefined
  #failure: { readonly error: unknown } | undefined
  #ended = false
  #discarding = false
  #buffered = 0

  /** @param onTaken called with the number of bytes that no longer take room here */
  constructor(onTaken: (bytes: number) => void) {
    this.#onTaken = onTaken
  }

  /** Bytes that wait for their reader. */
  get buffered(): number {
    return this.#buffered
  }

  get finished(): boolean {
    return this.#ended || this.#failure !== undefined
  }

  push(bytes: Uint8Array): void {
    if (this.finished || bytes.byteLength === 0) return
    if (this.#discarding) {
      this.#onTaken(bytes.byteLength)
      return
    }
    this.#buffered += bytes.byteLength
    this.#items.push({ type: 'bytes', bytes })
    this.#wake()
  }

  pushGap(gap: Gap): void {
    if (this.finished || this.#discarding) return
    this.#items.push({ type: 'gap', gap })
    this.#wake()
  }

  /** No bytes will follow. */
  end(): void {
    if (this.finished) return
    this.#ended = true
    this.#wake()
  }

  /** What is here can still be taken; then `error` is thrown. */
  fail(error: unknown): void {
    if (this.finished) return
    this.#failure = { error }
    this.#wake()
  }

  /** Nobody will read any more: what is here and what comes is dropped, so that the writer does not wait for a reader. */
  discard(): void {
    this.#discarding = true
    const dropped = this.#buffered
    this.#items.length = 0
    this.#buffered = 0
    if (dropped > 0) this.#onTaken(dropped)
    this.#wake()
  }

  async take(): Promise<Taken> {
    for (;;) {
      const item = this.#items.shift()
      if (item !== undefined) {
        if (item.type === 'bytes') {
          this.#buffered -= item.bytes.byteLength
          this.#onTaken(item.bytes.byteLength)
        }
        return item
      }
      if (this.#failure !== undefined) throw this.#failure.error
      if (this.#ended || this.#discarding) return { type: 'end' }
      this.#waiting ??= Promise.withResolvers<void>()
      await this.#waiting.promise
    }
  }

  #wake(): void {
    this.#waiting?.resolve()
    this.#waiting = undefined
  }
}
