/** One stream of a process, as the caller reads it. */
import { concatBytes, textOfBytes } from './encoding.ts'
import { SandglassError } from './error.ts'
import type { Gap, OutputQueue } from './output-queue.ts'

export type OutputStreamOptions = {
  /**
   * Called when bytes were lost because nobody read them while the window (1 MiB) moved on; reading then continues behind the gap.
   * Without it the stream throws `output_gone`: nothing is ever left out silently.
   */
  readonly onGap?: ((gap: Gap) => void) | undefined
}

/**
 * Bytes in order, each once. The process inside is held back when the reader is slow: a stream that is not read for long blocks
 * its process, as a pipe does. Whoever leaves a loop over it early says that the rest is not wanted.
 */
export class OutputStream implements AsyncIterable<Uint8Array> {
  readonly #queue: OutputQueue
  readonly #onGap: ((gap: Gap) => void) | undefined

  /** @internal */
  constructor(queue: OutputQueue, options: OutputStreamOptions) {
    this.#queue = queue
    this.#onGap = options.onGap
  }

  /** The next bytes, or undefined at the end. @throws SandglassError `output_gone`, `lost_contact`, `sandbox_ended` */
  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const taken = await this.#queue.take()
      if (taken.type === 'end') return undefined
      if (taken.type === 'bytes') return taken.bytes
      if (this.#onGap === undefined) throw new SandglassError('output_gone', `Bytes ${taken.gap.from} to ${taken.gap.to} of the output are no longer kept.`)
      this.#onGap(taken.gap)
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (let bytes = await this.read(); bytes !== undefined; bytes = await this.read()) yield bytes
    } finally {
      if (!this.#queue.finished) this.#queue.discard()
    }
  }

  /** The same as text; characters that are split between chunks stay whole, bytes that are not UTF-8 become U+FFFD. */
  async *text(): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    for await (const bytes of this) {
      const text = decoder.decode(bytes, { stream: true })
      if (text !== '') yield text
    }
    const rest = decoder.decode()
    if (rest !== '') yield rest
  }

  /** Everything until the end. Held in memory: for output of a size that you know. */
  async readBytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    for await (const bytes of this) chunks.push(bytes)
    return concatBytes(chunks)
  }

  /** Everything until the end, as text. */
  async readText(): Promise<string> {
    return textOfBytes(await this.readBytes())
  }

  /** The same as a web stream, for `pipeTo`. */
  readable(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const bytes = await this.read()
          if (bytes === undefined) controller.close()
          else controller.enqueue(bytes)
        },
        cancel: () => this.discard(),
      },
      { highWaterMark: 0 },
    )
  }

  /** Nobody will read this: drop what comes, so that the process does not wait. */
  discard(): void {
    this.#queue.discard()
  }
}
