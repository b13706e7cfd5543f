/** Standard output or error of this process: written with back-pressure, and quiet when its reader goes away. */
import type { Writable } from 'node:stream'

/** The reader of standard output has gone, as `head` does. */
export class ReaderGone extends Error {
  override readonly name = 'ReaderGone'
}

export class OutputPipe {
  readonly #stream: Writable
  readonly #gone = Promise.withResolvers<never>()
  #isGone = false

  constructor(stream: Writable) {
    this.#stream = stream
    this.#gone.promise.catch(() => undefined)
    // Without a listener an error of the stream would end this process before it has cleaned up.
    stream.on('error', () => {
      this.#isGone = true
      this.#gone.reject(new ReaderGone())
    })
  }

  /** Rejects with ReaderGone when the reader goes away; never resolves. */
  get gone(): Promise<never> {
    return this.#gone.promise
  }

  /** Resolves when the bytes are taken. @throws ReaderGone */
  async write(data: string | Uint8Array): Promise<void> {
    if (this.#isGone) throw new ReaderGone()
    const written = Promise.withResolvers<void>()
    this.#stream.write(data, (error) => (error ? written.reject(new ReaderGone()) : written.resolve()))
    await written.promise
  }
}
