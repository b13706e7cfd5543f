import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ClientFrame,
  CodedError,
  encodeClientFrame,
  encodeServerFrame,
  LIMITS,
  parseClientFrame,
  parseServerFrame,
  type ServerFrame,
} from '../src/index.ts'

const clientFrames: ClientFrame[] = [
  { channel: 'stdin', bytes: Uint8Array.of(0, 255, 10) },
  { channel: 'stdin', bytes: new Uint8Array(LIMITS.frameBytes) },
  { channel: 'status', status: { type: 'start', process: { argv: ['printf', 'é'], stdin: true }, credit_bytes: 65_536 } },
  { channel: 'status', status: { type: 'attach', process_id: 'key:abc', credit_bytes: 1, since_stdout: 4_096 } },
  { channel: 'resize', size: { cols: 80, rows: 24 } },
  { channel: 'signal', signal: { signal: 'INT' } },
  { channel: 'credit', bytes: 4_294_967_295 },
  { channel: 'halfClose' },
]

for (const frame of clientFrames) {
  test(`a client's ${frame.channel} frame comes back as it was`, () => assert.deepEqual(parseClientFrame(encodeClientFrame(frame)), frame))
}

const serverFrames: ServerFrame[] = [
  { channel: 'stdout', bytes: Uint8Array.of(1, 2) },
  { channel: 'stderr', bytes: new Uint8Array(0) },
  { channel: 'status', status: { type: 'gap', stream: 'stdout', from: 1, to: 2 } },
  { channel: 'status', status: { type: 'error', code: 'lost_contact', detail: 'x' } },
  { channel: 'credit', bytes: 0 },
]

for (const frame of serverFrames) {
  test(`a server's ${frame.channel} frame comes back as it was`, () => assert.deepEqual(parseServerFrame(encodeServerFrame(frame)), frame))
}

const json = (channel: number, value: unknown): Uint8Array => Buffer.concat([Buffer.of(channel), Buffer.from(JSON.stringify(value))])

const malformed: [string, Uint8Array][] = [
  ['an empty frame', new Uint8Array(0)],
  ['a channel that only servers use', Uint8Array.of(1, 65)],
  ['a channel that does not exist', Uint8Array.of(77)],
  ['status that is not JSON', Uint8Array.of(3, 123)],
  ['status that is not UTF-8', Uint8Array.of(3, 34, 255, 34)],
  ['status with an unknown field', json(3, { type: 'start', process: { argv: ['a'] }, credit_bytes: 1, shell: true })],
  ['status of an unknown type', json(3, { type: 'stop' })],
  ['a terminal without columns', json(4, { cols: 0, rows: 24 })],
  ['a terminal of 65535 columns', json(4, { cols: 65_535, rows: 24 })],
  ['a signal that does not exist', json(5, { signal: 'SEGVISH' })],
  ['credit of three bytes', Uint8Array.of(6, 0, 0, 1)],
  ['half-close of standard output', Uint8Array.of(255, 1)],
  ['standard input beyond LIMITS.frameBytes', new Uint8Array(2 + LIMITS.frameBytes)],
  ['control beyond LIMITS.controlFrameBytes', Buffer.concat([Buffer.of(3), Buffer.alloc(LIMITS.controlFrameBytes + 1, 32)])],
]

for (const [name, bytes] of malformed) {
  test(`${name} is a malformed_frame`, () => {
    assert.throws(
      () => parseClientFrame(bytes),
      (error: unknown) => error instanceof CodedError && error.code === 'malformed_frame',
    )
  })
}
