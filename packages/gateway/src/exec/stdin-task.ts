/** Standard input of an exec, fed beside its output, once the process has started. */
import type { Call } from '../http/call.ts'
import { feedStdin } from './stdin-feed.ts'

export class StdinTask {
  readonly #call: Call
  readonly #bytes: Uint8Array | undefined
  readonly #onFailure: () => void
  #failure: unknown

  /** @param onFailure ends the exec: without its input it may never end by itself */
  constructor(call: Call, bytes: Uint8Array | undefined, onFailure: () => void) {
    this.#call = call
    this.#bytes = bytes
    this.#onFailure = onFailure
  }

  /** Why the input could not be fed; undefined while all is well. */
  get failure(): unknown {
    return this.#failure
  }

  start(processId: string): void {
    if (this.#bytes === undefined) return
    const fed = feedStdin(this.#call.guest, processId, this.#bytes, this.#call.session.signal).catch((error: unknown) => {
      this.#failure = error
      this.#onFailure()
    })
    void fed
  }
}
