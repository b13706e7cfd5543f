/**
 * The frame stream of the guest protocol (answers of exec and output): `[channel u8][length u32 BE][payload]`.
 *
 * Data payloads begin with the offset (u64 BE) of their first byte in that stream since the process started, so that a reader who
 * returns can prove that nothing is lost or doubled. Everything here comes from a guest and is hostile: lengths are checked before
 * anything is kept, offsets must fit a safe integer, and status frames are parsed by schema.
 */
import Type, { type Static } from 'typebox'
import { CodedError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { ProcessSchema } from './process.ts'
import { closed, oneOf, parserOf } from './schema.ts'

export const GUEST_FRAMES_MEDIA_TYPE = 'application/vnd.sandglass.frames'

const offset = Type.Integer({ minimum: 0 })
export const GuestStatusSchema = Type.Union([
  closed({ type: Type.Literal('started'), process: ProcessSchema }),
  closed({ type: Type.Literal('gap'), stream: oneOf(['stdout', 'stderr']), from: offset, to: offset }),
  closed({ type: Type.Literal('heartbeat') }),
  closed({ type: Type.Literal('exit'), process: ProcessSchema }),
  closed({ type: Type.Literal('end'), process: Type.Optional(ProcessSchema) }),
  closed({ type: Type.Literal('error'), code: Type.String(), detail: Type.String() }),
])
export type GuestStatus = Static<typeof GuestStatusSchema>
const statusParser = parserOf(GuestStatusSchema, 'malformed_frame')

export type GuestFrame = { stream: 'stdout' | 'stderr'; offset: number; bytes: Uint8Array } | { stream: 'status'; status: GuestStatus }

const HEADER_BYTES = 5
const OFFSET_BYTES = 8
const MAX_STATUS_BYTES = LIMITS.controlFrameBytes
const MAX_DATA_BYTES = LIMITS.guestFrameBytes + OFFSET_BYTES
const STATUS_CHANNEL = 3
const decoder = new TextDecoder('utf-8', { fatal: true })

function maxLength(channel: number): number {
  return channel === STATUS_CHANNEL ? MAX_STATUS_BYTES : MAX_DATA_BYTES
}

function decodeStatus(payload: Uint8Array): GuestFrame {
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(payload))
  } catch (cause) {
    throw new CodedError('malformed_frame', 'A status frame of the guest is not JSON.', { cause })
  }
  return { stream: 'status', status: statusParser.parse(value) }
}

/** A frame whose head has come, and how much of it is still to come. */
type OpenFrame =
  | { readonly stream: 'stdout' | 'stderr'; offset: number; left: number }
  | { readonly stream: 'status'; readonly payload: Uint8Array; left: number }

/**
 * Splits a byte stream into frames. Feed chunks in order.
 *
 * Bytes of data are given out as they come, as views of their chunk: a data frame that is cut comes as several with their own offsets, and
 * nothing of it is copied or kept. Of a status frame that is cut at most one is kept.
 */
export class GuestFrameDecoder {
  readonly #head = new Uint8Array(HEADER_BYTES + OFFSET_BYTES)
  #headBytes = 0
  #open: OpenFrame | undefined;

  /** @throws CodedError `malformed_frame`; the stream is then worthless */
  *push(chunk: Uint8Array): Generator<GuestFrame> {
    let rest = chunk
    for (;;) {
      if (this.#open === undefined) {
        rest = this.#readHead(rest)
        if (this.#open === undefined) return
      }
      const open: OpenFrame = this.#open
      const part = rest.subarray(0, open.left)
      if (part.byteLength === 0 && open.left > 0) return
      rest = rest.subarray(part.byteLength)
      open.left -= part.byteLength
      if (open.left === 0) this.#open = undefined
      if (open.stream !== 'status') {
        yield { stream: open.stream, offset: open.offset, bytes: part }
        open.offset += part.byteLength
        continue
      }
      if (part.byteLength === open.payload.byteLength) {
        yield decodeStatus(part)
        continue
      }
      open.payload.set(part, open.payload.byteLength - open.left - part.byteLength)
      if (open.left === 0) yield decodeStatus(open.payload)
    }
  }

  /** True when the stream may end here. */
  get atBoundary(): boolean {
    return this.#headBytes === 0 && this.#open === undefined
  }

  /** Opens a frame when its head is whole. @returns what follows the head */
  #readHead(chunk: Uint8Array): Uint8Array {
    let rest = this.#fillHead(chunk, HEADER_BYTES)
    if (this.#headBytes < HEADER_BYTES) return rest
    const view = new DataView(this.#head.buffer)
    const channel = view.getUint8(0)
    const length = view.getUint32(1)
    if (channel < 1 || channel > STATUS_CHANNEL) throw new CodedError('malformed_frame', `The guest sent channel ${channel}.`)
    if (length > maxLength(channel)) throw new CodedError('malformed_frame', `The guest sent a frame of ${length} bytes.`)
    if (channel === STATUS_CHANNEL) {
      this.#headBytes = 0
      this.#open = { stream: 'status', payload: new Uint8Array(length), left: length }
      return rest
    }
    if (length < OFFSET_BYTES) throw new CodedError('malformed_frame', 'A data frame of the guest has no offset.')
    rest = this.#fillHead(rest, HEADER_BYTES + OFFSET_BYTES)
    if (this.#headBytes < HEADER_BYTES + OFFSET_BYTES) return rest
    const position = view.getBigUint64(HEADER_BYTES)
    if (position > BigInt(Number.MAX_SAFE_INTEGER)) throw new CodedError('malformed_frame', 'An offset of the guest is too large.')
    this.#headBytes = 0
    this.#open = { stream: channel === 1 ? 'stdout' : 'stderr', offset: Number(position), left: length - OFFSET_BYTES }
    return rest
  }

  #fillHead(bytes: Uint8Array, wanted: number): Uint8Array {
    const part = bytes.subarray(0, Math.max(0, wanted - this.#headBytes))
    this.#head.set(part, this.#headBytes)
    this.#headBytes += part.byteLength
    return bytes.subarray(part.byteLength)
  }
}
