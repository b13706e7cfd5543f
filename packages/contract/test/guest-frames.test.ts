import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError, type GuestFrame, GuestFrameDecoder, LIMITS } from '../src/index.ts'

function data(channel: number, offset: number, bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt8(channel, 0)
  header.writeUInt32BE(8 + bytes.byteLength, 1)
  header.writeBigUInt64BE(BigInt(offset), 5)
  return Buffer.concat([header, bytes])
}

function raw(channel: number, payload: Uint8Array, length = payload.byteLength): Buffer {
  const header = Buffer.alloc(5)
  header.writeUInt8(channel, 0)
  header.writeUInt32BE(length, 1)
  return Buffer.concat([header, payload])
}

const wire = Buffer.concat([
  data(1, 0, Buffer.from('a\0b')),
  raw(3, Buffer.from('{"type":"heartbeat"}')),
  data(2, 2 ** 40, Buffer.alloc(LIMITS.guestFrameBytes, 7)),
])

function decode(chunks: Iterable<Uint8Array>): { frames: GuestFrame[]; decoder: GuestFrameDecoder } {
  const decoder = new GuestFrameDecoder()
  const frames: GuestFrame[] = []
  for (const chunk of chunks) for (const frame of decoder.push(chunk)) add(frames, frame)
  return { frames, decoder }
}

/** As a reader that keeps them: copied, because a frame may view its chunk, and the pieces of a stream joined where they meet. */
function add(frames: GuestFrame[], frame: GuestFrame): void {
  const last = frames.at(-1)
  if (frame.stream === 'status') frames.push(frame)
  else if (last?.stream === frame.stream && last.offset + last.bytes.byteLength === frame.offset) last.bytes = Buffer.concat([last.bytes, frame.bytes])
  else frames.push({ ...frame, bytes: Uint8Array.from(frame.bytes) })
}

for (const size of [1, 3, 5, 13, 1_000, wire.byteLength]) {
  test(`frames are the same when they arrive ${size} bytes at a time`, () => {
    const chunks = Array.from({ length: Math.ceil(wire.byteLength / size) }, (_, index) => wire.subarray(index * size, (index + 1) * size))
    const { frames, decoder } = decode(chunks)
    assert.deepEqual(
      frames.map((frame) => (frame.stream === 'status' ? frame.status.type : [frame.stream, frame.offset, frame.bytes.byteLength])),
      [['stdout', 0, 3], 'heartbeat', ['stderr', 2 ** 40, LIMITS.guestFrameBytes]],
    )
    assert.equal(decoder.atBoundary, true)
  })
}

test('bytes are given out before their frame is whole, and are views of their chunk', () => {
  const chunk = data(1, 7, Buffer.from('abcd')).subarray(0, 15)
  const [frame] = new GuestFrameDecoder().push(chunk)
  if (frame?.stream !== 'stdout') return assert.fail('no data came')
  assert.deepEqual([frame.offset, Buffer.from(frame.bytes).toString()], [7, 'ab'])
  assert.equal(frame.bytes.buffer, chunk.buffer)
})

test('a frame without bytes is one, so that its offset can be checked', () => {
  assert.deepEqual(decode([data(2, 5, Buffer.alloc(0))]).frames, [{ stream: 'stderr', offset: 5, bytes: new Uint8Array(0) }])
})

test('a stream that is cut inside a frame is not at a boundary', () => assert.equal(decode([wire.subarray(0, 9)]).decoder.atBoundary, false))

const hostile: [string, Buffer][] = [
  ['a channel that does not exist', raw(9, Buffer.alloc(1))],
  ['a length of four gigabytes', raw(1, Buffer.alloc(0), 2 ** 32 - 1)],
  ['data without an offset', raw(1, Buffer.alloc(3))],
  ['an offset beyond a safe integer', raw(1, Buffer.alloc(9, 255))],
  ['status that is not JSON', raw(3, Buffer.from('{'))],
  ['status with an unknown field', raw(3, Buffer.from('{"type":"heartbeat","x":1}'))],
]

for (const [name, bytes] of hostile) {
  test(`a guest that sends ${name} is refused`, () => {
    assert.throws(
      () => decode([bytes]),
      (error: unknown) => error instanceof CodedError && error.code === 'malformed_frame',
    )
  })
}

test('10,000 seeded mutations of a good stream are decoded or refused, never anything else', () => {
  let state = 20_261_130
  const next = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
  const short = wire.subarray(0, 200)
  for (let round = 0; round < 10_000; round += 1) {
    const mutated = Buffer.from(short)
    for (let count = 1 + next(4); count > 0; count -= 1) mutated[next(mutated.byteLength)] = next(256)
    const seed = state
    try {
      decode([mutated.subarray(0, next(200)), mutated])
    } catch (error) {
      assert.ok(error instanceof CodedError && error.code === 'malformed_frame', `seed ${seed}: ${String(error)}`)
    }
  }
})
