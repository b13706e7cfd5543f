/** Standard input of a process, as the caller writes it. */
import { bytesOfText } from './encoding.ts'
import type { InputQueue } from './input-queue.ts'

/** Whole or streamed input. Streams are read no faster than the process reads. */
export type InputSource = string | Uint8Array | AsyncIterable<Uint8Array>

export class ProcessInput {
  readonly #queue: InputQueue

  /** @internal */
  constructor(queue: InputQueue) {
    this.#queue = queue
  }

  /**
   * Resolves when there is room for more: await it, and a slow process slows you down.
   * @throws SandglassError `stdin_closed` when the process has ended or this client did not ask for `stdin`, `stdin_offset` when another client has
   * written meanwhile (this one's bytes were not), `lost_contact`
   */
  async write(data: string | Uint8Array): Promise<void> {
    await this.#queue.write(typeof data === 'string' ? bytesOfText(data) : data)
  }

  /** End of file, after what was written. */
  close(): void {
    this.#queue.close()
  }

  /** Writes all of it, then end of file. */
  async feed(source: InputSource): Promise<void> {
    if (typeof source === 'string' || source instanceof Uint8Array) await this.write(source)
    else for await (const bytes of source) await this.write(bytes)
    this.close()
  }

  /** The same as a web stream, for `pipeTo`. */
  writable(): WritableStream<Uint8Array> {
    return new WritableStream<Uint8Array>({ write: (bytes) => this.write(bytes), close: () => this.close(), abort: () => this.close() })
  }
}
