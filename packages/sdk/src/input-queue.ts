/**
 * Standard input on its way to a process. Sends within the server's credit, which comes back when the process has got the bytes; what no credit
 * came back for is kept, never more than one credit. After a lost connection nobody here knows how much of that arrived, so all of it is sent again
 * from its first byte on, and the guest, which knows the writer of every byte, leaves out what this one has given already. To go on behind what the
 * process says it has got would be wrong: those bytes may be somebody else's.
 *
 * A terminal has many writers and counts for nobody: there what it says it has got is left out here, and more is not asked.
 */
import { LIMITS } from '@sandglass/contract/limits'
import { SandglassError } from './error.ts'

type Pending = { bytes: Uint8Array; readonly done: PromiseWithResolvers<void> }

export type InputSink = {
  data(bytes: Uint8Array): void
  halfClose(): void
}

/** Bytes that are sent again have no caller any more who waits for them. */
function unwatched(): PromiseWithResolvers<void> {
  const done = Promise.withResolvers<void>()
  done.promise.catch(() => undefined)
  return done
}

export class InputQueue {
  readonly #pending: Pending[] = []
  /** What no credit came back for. */
  readonly #sent: Uint8Array[] = []
  /** Offset of the first byte in #sent. */
  #sentFrom = 0
  #credit = 0
  #closing = false
  #closed = false
  #sink: InputSink | undefined
  #failure: { readonly error: unknown } | undefined

  /** Offset of the first byte of which it is not known whether it arrived, where there is one. */
  get resumeAt(): number | undefined {
    return this.#sent.length > 0 ? this.#sentFrom : undefined
  }

  /** Resolves when the bytes are on their way. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error)
    if (this.#closing) return Promise.reject(new SandglassError('stdin_closed'))
    if (bytes.byteLength === 0) return Promise.resolve()
    const done = Promise.withResolvers<void>()
    this.#pending.push({ bytes, done })
    this.#pump()
    return done.promise
  }

  /** End of file after everything that was written. */
  close(): void {
    this.#closing = true
    this.#pump()
  }

  /** No more can be written: the process has ended, contact is lost, or this client only reads. */
  fail(error: unknown): void {
    if (this.#failure !== undefined) return
    this.#failure = { error }
    for (const { done } of this.#pending.splice(0)) done.reject(error)
  }

  /**
   * A connection is there (again).
   * @param from offset that the server gives to the first byte that is sent now
   * @param isOpen whether it still reads
   * @throws SandglassError `lost_contact` when bytes in between are no longer known
   */
  attach(sink: InputSink, from: number, credit: number, isOpen: boolean): void {
    if (this.#failure !== undefined) return
    if (!isOpen) {
      // Nobody will give credit for what still waits here.
      for (const { done } of this.#pending.splice(0)) done.reject(new SandglassError('stdin_closed'))
      this.#closing = true
      this.#closed = true
      return
    }
    if (from < this.#sentFrom) {
      const detail = `The process got ${from} bytes of standard input, and this client no longer has what followed them.`
      throw new SandglassError('lost_contact', detail, { retryable: false })
    }
    this.#sink = sink
    this.#credit = credit
    this.#closed = false
    this.#pending.unshift(...this.#unknownFrom(from).map((bytes) => ({ bytes, done: unwatched() })))
    this.#sentFrom = from
    this.#pump()
  }

  #unknownFrom(from: number): Uint8Array[] {
    let position = this.#sentFrom
    return this.#sent.splice(0).flatMap((bytes) => {
      const known = Math.max(0, from - position)
      position += bytes.byteLength
      return known < bytes.byteLength ? [bytes.subarray(known)] : []
    })
  }

  detach(): void {
    this.#sink = undefined
    this.#credit = 0
  }

  grant(bytes: number): void {
    this.#credit += bytes
    this.#forget(bytes)
    this.#pump()
  }

  /** It arrived. */
  #forget(bytes: number): void {
    for (let [first, left] = [this.#sent[0], bytes]; first !== undefined && left > 0; first = this.#sent[0]) {
      const part = Math.min(left, first.byteLength)
      this.#sentFrom += part
      left -= part
      if (part === first.byteLength) this.#sent.shift()
      else this.#sent[0] = first.subarray(part)
    }
  }

  #pump(): void {
    const sink = this.#sink
    if (sink === undefined) return
    for (let next = this.#pending[0]; next !== undefined && this.#credit > 0; next = this.#pending[0]) {
      const part = next.bytes.subarray(0, Math.min(this.#credit, LIMITS.frameBytes))
      next.bytes = next.bytes.subarray(part.byteLength)
      this.#credit -= part.byteLength
      this.#remember(part)
      sink.data(part)
      if (next.bytes.byteLength === 0) {
        this.#pending.shift()
        next.done.resolve()
      }
    }
    if (this.#closing && !this.#closed && this.#pending.length === 0) {
      this.#closed = true
      sink.halfClose()
    }
  }

  #remember(part: Uint8Array): void {
    // A caller may reuse its buffer once the write has resolved.
    this.#sent.push(part.slice())
  }
}
