/**
 * Output of one session on its way to the client: never more than the client gave credit for, and in order. Pure.
 *
 * The next piece is asked for only when everything before it is sent, so what waits here is at most what one read of the guest's stream
 * brought; the rest waits in the guest. An exit with no output before it needs no credit. Pieces that lie beside each other go out as one
 * frame: each message costs its reader more than the bytes in it.
 */
import { CHANNEL, LIMITS, type ServerFrame, type ServerStatus } from '@sandglass/contract'
import type { StreamName } from '../exec/guest-output.ts'

type Piece = { readonly stream: StreamName; bytes: Uint8Array } | { readonly status: ServerStatus }

/** A frame and, where it is known already, its message. */
export type GatedFrame = ServerFrame & { readonly message?: Uint8Array }

export class OutputGate {
  #pieces: Piece[] = []
  #creditBytes = 0

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  addCredit(bytes: number): void {
    this.#creditBytes += bytes
  }

  pushData(stream: StreamName, bytes: Uint8Array): void {
    if (bytes.byteLength > 0) this.#pieces.push({ stream, bytes })
  }

  pushStatus(status: ServerStatus): void {
    this.#pieces.push({ status })
  }

  /** What may be sent now. */
  *take(): Generator<GatedFrame> {
    for (let piece = this.#pieces[0]; piece !== undefined; piece = this.#pieces[0]) {
      if ('status' in piece) {
        this.#pieces.shift()
        yield { channel: 'status', status: piece.status }
        continue
      }
      const parts = this.#takeBytes(piece.stream, Math.min(this.#creditBytes, LIMITS.frameBytes))
      if (parts.length === 0) return
      yield dataFrame(piece.stream, parts)
    }
  }

  /** Of this stream, from the pieces in front. */
  #takeBytes(stream: StreamName, mostBytes: number): Uint8Array[] {
    const parts: Uint8Array[] = []
    let left = mostBytes
    let whole = 0
    for (const piece of this.#pieces) {
      if (left === 0 || 'status' in piece || piece.stream !== stream) break
      const part = piece.bytes.subarray(0, left)
      parts.push(part)
      left -= part.byteLength
      if (part.byteLength < piece.bytes.byteLength) piece.bytes = piece.bytes.subarray(part.byteLength)
      else whole += 1
    }
    this.#pieces.splice(0, whole)
    this.#creditBytes -= mostBytes - left
    return parts
  }
}

/** Copied once, into the message that goes out. */
function dataFrame(stream: StreamName, parts: readonly Uint8Array[]): GatedFrame {
  const message = Buffer.concat([Uint8Array.of(CHANNEL[stream]), ...parts])
  return { channel: stream, bytes: message.subarray(1), message }
}
