/** One output stream of an exec that is answered in one piece. */
import { isUtf8 } from 'node:buffer'
import { LIMITS } from '@sandglass/contract'
import type { BufferBudget } from './buffer-budget.ts'

export type EncodedOutput = { readonly text: string; readonly encoding: 'utf-8' | 'base64' }

const CONTINUATION = 0b1000_0000
const MAX_CHARACTER_BYTES = 4

/** Without a character that was cut at the end. */
function withoutCutCharacter(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(MAX_CHARACTER_BYTES, bytes.byteLength); back += 1) {
    const byte = bytes[bytes.byteLength - back] ?? 0
    if ((byte & 0b1100_0000) === CONTINUATION) continue
    const head = bytes.subarray(0, bytes.byteLength - back)
    return isUtf8(bytes.subarray(bytes.byteLength - back)) ? bytes : head
  }
  return bytes
}

export class CollectedOutput implements Disposable {
  readonly #budget: BufferBudget
  readonly #chunks: Uint8Array[] = []
  #bytes = 0
  #isTruncated = false

  constructor(budget: BufferBudget) {
    this.#budget = budget
  }

  get isTruncated(): boolean {
    return this.#isTruncated
  }

  /** Keeps what fits and drops the rest, so that the process is not held up. */
  push(chunk: Uint8Array): void {
    if (this.#isTruncated) return
    const kept = this.#budget.take(Math.min(chunk.byteLength, LIMITS.execJsonOutputBytes - this.#bytes))
    this.#bytes += kept
    // A copy: the chunk is a view of a larger buffer that would be kept alive with it.
    if (kept > 0) this.#chunks.push(Uint8Array.prototype.slice.call(chunk, 0, kept))
    if (kept < chunk.byteLength) this.#isTruncated = true
  }

  encoded(): EncodedOutput {
    const whole = Buffer.concat(this.#chunks, this.#bytes)
    const bytes = this.#isTruncated ? withoutCutCharacter(whole) : whole
    return isUtf8(bytes) ? { text: bytes.toString('utf-8'), encoding: 'utf-8' } : { text: whole.toString('base64'), encoding: 'base64' }
  }

  [Symbol.dispose](): void {
    this.#budget.release(this.#bytes)
    this.#bytes = 0
    this.#chunks.length = 0
  }
}
