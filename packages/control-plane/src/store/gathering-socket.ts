/**
 * A connection to Postgres that sends what is written in one turn of the event loop as one piece: statements that travel together then cost one call
 * to the kernel and wake the server once. Under TLS another stream takes its place, which gathers nothing and is only slower.
 */
import { Socket } from 'node:net'

type Written = (error?: Error | null) => void

export class GatheringSocket extends Socket {
  #gathering = false

  constructor() {
    super()
    // `connect` puts its own `write` in place of any other, so that an override would not be called.
    this.once('connect', () => {
      this.write = this.#gather
    })
  }

  readonly #gather = (chunk: Uint8Array | string, encoding?: BufferEncoding | Written, written?: Written): boolean => {
    if (!this.#gathering) {
      this.#gathering = true
      this.cork()
      process.nextTick(() => {
        this.#gathering = false
        this.uncork()
      })
    }
    return typeof encoding === 'string' ? super.write(chunk, encoding, written) : super.write(chunk, encoding ?? written)
  }
}
