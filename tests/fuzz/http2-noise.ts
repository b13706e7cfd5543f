/** HTTP/2 frames that are half right: real types, ids and lengths beside impossible ones. Bytes only; nothing here knows a connection. */
import type { Random } from '../failure/seed.ts'
import { pick } from './rounds.ts'

const TYPES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 200] as const
const HEADER_BYTES = 9
/** `:status 200`, `:method GET`, `:path /` and more of the static table; a literal; a table size update; nonsense. */
const HEADER_BLOCKS: readonly Uint8Array[] = [
  Uint8Array.of(0x88),
  Uint8Array.of(0x82, 0x84, 0x86),
  Uint8Array.of(0x8d, 0x5f, 0x04, 0x61, 0x2f, 0x62, 0x63),
  Uint8Array.of(0x40, 0x01, 0x61, 0x01, 0x62),
  Uint8Array.of(0x3f, 0xff, 0xff, 0xff, 0x7f),
  Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0x0f),
]

function payloadOf(random: Random, type: number): Uint8Array {
  if (random.chance(0.25)) return random.bytes(random.integer(80))
  switch (type) {
    case 1:
    case 9:
      return pick(random, HEADER_BLOCKS)
    case 3:
      return Uint8Array.of(0, 0, 0, random.integer(16))
    case 4: {
      const settings = new DataView(new ArrayBuffer(6 * random.integer(4)))
      for (let at = 0; at < settings.byteLength; at += 6) {
        settings.setUint16(at, random.integer(10))
        settings.setUint32(at + 2, pick(random, [0, 1, 16_384, 65_535, 0x7fffffff, 0xffffffff]))
      }
      return new Uint8Array(settings.buffer)
    }
    case 6:
      return random.bytes(8)
    case 8: {
      const update = new DataView(new ArrayBuffer(4))
      update.setUint32(0, pick(random, [0, 1, 65_535, 0x7fffffff, 0xffffffff]))
      return new Uint8Array(update.buffer)
    }
    default:
      return random.bytes(random.integer(pick(random, [4, 200, 20_000])))
  }
}

function frame(random: Random): Uint8Array {
  const type = pick(random, TYPES)
  const payload = payloadOf(random, type)
  const bytes = Buffer.alloc(HEADER_BYTES + payload.byteLength)
  // Now and then a length that lies.
  bytes.writeUIntBE(random.chance(0.05) ? random.integer(0xffffff) : payload.byteLength, 0, 3)
  bytes[3] = type
  bytes[4] = random.chance(0.5) ? pick(random, [0, 1, 4, 5, 8, 0x20]) : random.integer(256)
  bytes.writeUInt32BE(pick(random, [0, 1, 1, 2, 3, 5, 7, 0x7fffffff, 0xffffffff]), 5)
  bytes.set(payload, HEADER_BYTES)
  return bytes
}

const SETTINGS = Uint8Array.of(0, 0, 0, 4, 0, 0, 0, 0, 0)
const CLIENT_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** What a server (`guest`) or a client (`host`) of HTTP/2 might send first, and then anything. */
export function http2Noise(random: Random, side: 'client' | 'server'): Uint8Array {
  const frames = Array.from({ length: 1 + random.integer(30) }, () => frame(random))
  const opening = random.chance(0.85) ? [...(side === 'client' ? [CLIENT_PREFACE] : []), SETTINGS] : []
  return Buffer.concat([...opening, ...frames])
}
