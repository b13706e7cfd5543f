/** An exec is over with its exit frame, however the guest goes on. */
import assert from 'node:assert/strict'
import type { ServerHttp2Stream } from 'node:http2'
import { test } from 'node:test'
import { Bench } from './peers/bench.ts'

const PROCESS = {
  id: 'praaaaaaaaaaaaaaaa',
  key: null,
  argv: ['true'],
  cwd: '/',
  user: 'root',
  tty: false,
  pid: 2,
  signal: null,
  timed_out: false,
  started_at_ms: 0,
  stdout: { start: 0, end: 3 },
  stderr: { start: 0, end: 0 },
  stdin: { accepted: 0, open: false },
  output_open: false,
  truncated: false,
  cpu_ms: 0,
  memory_bytes: 0,
  cols: null,
  rows: null,
}
const RUNNING = { ...PROCESS, state: 'running', exit_code: null, ended_at_ms: null, duration_ms: null }
const EXITED = { ...PROCESS, state: 'exited', exit_code: 7, ended_at_ms: 1, duration_ms: 1 }

function frame(channel: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(channel)
  head.writeUInt32BE(payload.byteLength, 1)
  return Buffer.concat([head, payload])
}
const status = (value: unknown): Buffer => frame(3, Buffer.from(JSON.stringify(value)))
const output = (offset: bigint, text: string): Buffer => {
  const position = Buffer.alloc(8)
  position.writeBigUInt64BE(offset)
  return frame(1, Buffer.concat([position, Buffer.from(text)]))
}
const ALL = Buffer.concat([status({ type: 'started', process: RUNNING }), output(0n, 'abc'), status({ type: 'exit', process: EXITED })])

/** Answers an exec with these bytes and never ends the answer. */
function endless(bytes: Buffer, streams: ServerHttp2Stream[] = []): Promise<Bench> {
  return Bench.scripted(
    ({ stream }) => {
      stream.on('error', () => undefined)
      stream.resume()
      stream.respond({ ':status': 200, 'content-type': 'application/vnd.sandglass.frames' })
      stream.write(bytes)
      streams.push(stream)
    },
    // No timer of the gateway helps.
    { isTimeless: true },
  )
}

test('an exec is answered when its exit is known, though the guest leaves its stream open', async () => {
  await using bench = await endless(ALL)
  const response = await bench.post('/exec', { argv: ['true'] })
  const { exit_code, stdout } = JSON.parse(await response.text())
  assert.deepEqual([exit_code, stdout], [7, 'abc'])
})

test('what follows the exit changes nothing', async () => {
  await using bench = await endless(Buffer.concat([ALL, output(3n, 'more'), Buffer.from('nonsense')]))
  const response = await bench.post('/exec', { argv: ['true'] })
  const { exit_code, stdout } = JSON.parse(await response.text())
  assert.deepEqual([exit_code, stdout], [7, 'abc'])
})

test('an exec that is cut before its exit is lost contact, with all its bytes behind it', async () => {
  const streams: ServerHttp2Stream[] = []
  await using bench = await endless(ALL.subarray(0, ALL.byteLength - 1), streams)
  const answer = bench.post('/exec', { argv: ['true'], process_key: 'k' })
  while (streams.length === 0) await new Promise((resolve) => setImmediate(resolve))
  bench.host.script = ({ stream }) => stream.close(2)
  streams[0]?.end()
  assert.match(await (await answer).text(), /"lost_contact"/)
})
