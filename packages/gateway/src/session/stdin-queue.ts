/**
 * Standard input of one session, from the client's frames to batches for the guest. Pure.
 *
 * One batch is on its way at a time, and its acceptance is what gives the client new credit, so at most LIMITS.stdinCreditBytes are ever kept
 * here. A batch names its offset, so that bytes of an earlier connection that arrive late are not doubled. A terminal may have several
 * writers; there only the first batch names it, and none does once there are others: what they typed has moved the count.
 *
 * Where input flows (stdin-sender.ts), batches follow each other without waiting, and receipts for bytes take the place of acceptance.
 *
 * Sizes of a terminal go on requests of their own, so what was typed after a new size waits here until that size is set: the program that the
 * input starts must not see the old one. What was typed before it waits for nothing.
 */
import { CodedError, LIMITS } from '@sandglass/contract'

export type StdinBatch = { readonly bytes: Uint8Array; readonly offset: number | undefined; readonly close: boolean }

export class StdinQueue {
  readonly #isTerminal: boolean
  readonly #isShared: () => boolean
  /** Each with the number of sizes that the client had sent before it. */
  readonly #chunks: { readonly bytes: Uint8Array; readonly sizes: number }[] = []
  #queuedBytes = 0
  #sizes = 0
  #sizesSet = 0
  #sizesBeforeHalfClose = 0
  #offset: number | undefined
  /** What the client may still send. */
  #creditBytes: number
  #inFlightBytes: number | undefined
  #flows = false
  /** Sent where input flows, and not receipted yet. */
  #flowingBytes = 0
  #isHalfClosed = false
  #isCloseSent = false
  #isDiscarding: boolean

  /** @param offset of the first byte that the client will send */
  constructor(options: { readonly offset: number; readonly isTerminal: boolean; readonly isOpen: boolean; readonly isShared?: () => boolean }) {
    this.#offset = options.offset
    this.#isTerminal = options.isTerminal
    this.#isShared = options.isShared ?? (() => false)
    this.#isDiscarding = !options.isOpen
    this.#creditBytes = options.isOpen ? LIMITS.stdinCreditBytes : 0
  }

  get creditBytes(): number {
    return this.#creditBytes
  }

  /** Nothing waits and nothing is on its way. */
  get isIdle(): boolean {
    return this.#inFlightBytes === undefined && this.#flowingBytes === 0 && this.isSent
  }

  /** Nothing waits here. */
  get isSent(): boolean {
    return this.#isDiscarding || (this.#queuedBytes === 0 && this.#isHalfClosed === this.#isCloseSent)
  }

  /** @returns credit to give at once @throws CodedError `malformed_frame` */
  push(bytes: Uint8Array): number {
    if (bytes.byteLength > this.#creditBytes) throw new CodedError('malformed_frame', `Standard input goes beyond its credit of ${this.#creditBytes} bytes.`)
    if (this.#isHalfClosed && bytes.byteLength > 0) throw new CodedError('malformed_frame', 'Standard input goes on after its half-close.')
    if (this.#isDiscarding) return bytes.byteLength
    this.#creditBytes -= bytes.byteLength
    this.#queuedBytes += bytes.byteLength
    if (bytes.byteLength > 0) this.#chunks.push({ bytes, sizes: this.#sizes })
    return 0
  }

  halfClose(): void {
    if (!this.#isHalfClosed) this.#sizesBeforeHalfClose = this.#sizes
    this.#isHalfClosed = true
  }

  /** @param sizes how many the client has sent; input from now on comes after them */
  sizesSent(sizes: number): void {
    this.#sizes = sizes
  }

  /** @param sizes how many of them are set, or overtaken by one that is */
  sizesSet(sizes: number): void {
    this.#sizesSet = sizes
  }

  /** The next batch, if none is on its way. */
  take(): StdinBatch | undefined {
    if (this.#isDiscarding || this.#inFlightBytes !== undefined) return undefined
    const held = this.#chunks.findIndex((chunk) => chunk.sizes > this.#sizesSet)
    const free = this.#chunks.slice(0, held < 0 ? this.#chunks.length : held).map((chunk) => chunk.bytes)
    const close = held < 0 && this.#isHalfClosed && !this.#isCloseSent && this.#sizesBeforeHalfClose <= this.#sizesSet
    if (free.length === 0 && !close) return undefined
    const [only] = free
    const bytes = only !== undefined && free.length === 1 ? only : Buffer.concat(free)
    const batch = { bytes, offset: this.#isTerminal && this.#isShared() ? undefined : this.#offset, close }
    if (this.#flows) this.#flowingBytes += bytes.byteLength
    // An end is a request of its own also behind what flows.
    if (!this.#flows || close) this.#inFlightBytes = this.#flows ? 0 : bytes.byteLength
    this.#isCloseSent ||= close
    this.#chunks.splice(0, free.length)
    this.#queuedBytes -= bytes.byteLength
    this.#offset = this.#isTerminal || this.#offset === undefined ? undefined : this.#offset + bytes.byteLength
    return batch
  }

  /** The batch arrived. @returns credit to give */
  accepted(): number {
    const bytes = this.#inFlightBytes ?? 0
    this.#inFlightBytes = undefined
    this.#creditBytes += bytes
    return bytes
  }

  /** The batch on its way flows, and so do those that follow. */
  flow(): void {
    this.#flows = true
    this.#flowingBytes += this.#inFlightBytes ?? 0
    this.#inFlightBytes = undefined
  }

  /** @param bytes of what flows, that arrived @returns credit to give */
  receipted(bytes: number): number {
    const arrived = Math.min(bytes, this.#flowingBytes)
    this.#flowingBytes -= arrived
    this.#creditBytes += arrived
    return arrived
  }

  /** The process reads no more: whatever comes is dropped, as into a closed pipe. @returns credit to give */
  discard(): number {
    const bytes = (this.#inFlightBytes ?? 0) + this.#flowingBytes + this.#queuedBytes
    this.#isDiscarding = true
    this.#inFlightBytes = undefined
    this.#flowingBytes = 0
    this.#queuedBytes = 0
    this.#chunks.length = 0
    this.#creditBytes += bytes
    return bytes
  }
}
