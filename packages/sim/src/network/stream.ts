/** An answer that goes on: chunks in their order, an end or a failure, read as an async iterable. */
export class AnswerStream implements AsyncIterable<Uint8Array> {
  readonly statusCode: number
  readonly #chunks: Uint8Array[] = []
  #ended = false
  #failure: unknown
  #wake: (() => void) | undefined

  constructor(statusCode: number) {
    this.statusCode = statusCode
  }

  get ended(): boolean {
    return this.#ended
  }

  push(chunk: Uint8Array): void {
    if (this.#ended) return
    this.#chunks.push(chunk)
    this.#wake?.()
  }

  end(failure?: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.#failure = failure
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk !== undefined) yield chunk
      else if (this.#ended) {
        if (this.#failure !== undefined) throw this.#failure
        return
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
      }
    }
  }
}
