/** A guest that takes a request and then says nothing, or no end: whoever asked is told so within a bound that has a name. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerHttp2Stream } from 'node:http2'
import { connect } from 'node:net'
import { test } from 'node:test'
import { ProblemSchema, parserOf } from '@sandglass/contract'
import { Bench, SANDBOX } from './peers/bench.ts'
import { refuse } from './peers/host.ts'

const problem = parserOf(ProblemSchema)
/** What LIMITS.guestAnswerMs, uploadStallMs, downloadStallMs and guestWorkMs take here. */
const SHORT_MS = 300
/** Far beyond it, far below the real ones. */
const PATIENCE_MS = 8_000

async function toldLate(response: Response): Promise<void> {
  const { code, detail } = problem.parse(await response.json())
  assert.deepEqual({ status: response.status, code }, { status: 504, code: 'client_timeout' })
  assert.match(detail, /^The sandbox did not answer in [0-9]+ ms\.$/)
}

const bench = (script: (stream: ServerHttp2Stream) => void): Promise<Bench> => Bench.scripted(({ stream }) => script(stream), { shortenMs: SHORT_MS })
const signal = (): AbortSignal => AbortSignal.timeout(PATIENCE_MS)

const WORK: [name: string, ask: (one: Bench) => Promise<Response>][] = [
  ['an upload', (one) => one.ask('/files?path=/a', { method: 'PUT', body: 'content', signal: signal() })],
  ['a removal', (one) => one.ask('/files?path=/a', { method: 'DELETE', signal: signal() })],
  ['a move', (one) => one.post('/files/move', { from: '/a', to: '/b' })],
  ['an archive', (one) => one.ask('/files/archive?path=/a', { method: 'PUT', body: 'tar', signal: signal() })],
]

for (const [name, ask] of WORK) {
  test(`${name} that is taken and never answered is client_timeout`, async () => {
    await using one = await bench((stream) => void stream.resume())
    await toldLate(await ask(one))
  })

  test(`${name} whose answer never ends is client_timeout`, async () => {
    await using one = await bench((stream) => {
      stream.resume()
      stream.respond({ ':status': 200, 'content-type': 'application/json' })
      stream.write('{')
    })
    await toldLate(await ask(one))
  })
}

test('an upload that the sandbox takes nothing of is client_timeout', async () => {
  await using one = await bench(() => undefined)
  await toldLate(await one.ask('/files?path=/a', { method: 'PUT', body: new Uint8Array(8 * 1024 * 1024), signal: signal() }))
})

test('an upload of a client that pauses is waited for', async () => {
  await using one = await bench((stream) => {
    stream.resume()
    stream.once('end', () => {
      stream.respond({ ':status': 201, 'content-type': 'application/json' })
      stream.end('{"size":2,"etag":"\\"a\\""}')
    })
  })
  const { promise: later, resolve } = Promise.withResolvers<void>()
  setTimeout(resolve, 4 * SHORT_MS)
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(Buffer.from('a'))
      await later
      controller.enqueue(Buffer.from('b'))
      controller.close()
    },
  })
  const response = await one.ask('/files?path=/a', { method: 'PUT', body, duplex: 'half', signal: signal() })
  assert.equal(response.status, 201)
})

test('input that a program does not read is waited for', async () => {
  let answer: (() => void) | undefined
  await using one = await bench((stream) => {
    stream.resume()
    answer = () => {
      stream.respond({ ':status': 200, 'content-type': 'application/json' })
      stream.end('{"accepted":5,"open":true}')
    }
  })
  const asked = one.ask('/processes/key:x/stdin?offset=0', { method: 'POST', body: 'input', signal: signal() })
  const { promise: later, resolve } = Promise.withResolvers<void>()
  setTimeout(resolve, 4 * SHORT_MS)
  await later
  answer?.()
  assert.equal((await asked).status, 200)
})

const LINES = { accept: 'application/x-ndjson' }
const ENTRY = `${JSON.stringify({ name: 'b', path: '/a/b', type: 'file', size: 1, mode: '0644', uid: 0, gid: 0, mtime_ms: 1 })}\n`

const DOWNLOADS: [name: string, path: string, headers: Record<string, string>, first: string][] = [
  ['a file that stops after its headers', '/files?path=/a', {}, ''],
  ['a file that stops in the middle', '/files?path=/a', {}, 'half'],
  ['an archive that stops after its headers', '/files/archive?path=/a', {}, ''],
  ['an archive that stops in the middle', '/files/archive?path=/a', {}, 'half'],
  ['a listing by lines that stops in the middle', '/files/list?path=/a', LINES, ENTRY],
]

for (const [name, path, headers, first] of DOWNLOADS) {
  test(`${name} breaks the client’s connection, and the stream inward is reset`, async () => {
    const { promise: reset, resolve } = Promise.withResolvers<void>()
    await using one = await bench((stream) => {
      stream.once('aborted', () => resolve())
      stream.respond({ ':status': 200 })
      if (first !== '') stream.write(first)
    })
    const response = await one.ask(path, { headers, signal: signal() })
    assert.equal(response.status, 200)
    await assert.rejects(response.arrayBuffer(), { name: 'TypeError' })
    await reset
  })
}

test('a listing by lines that stops before its first line is client_timeout', async () => {
  await using one = await bench((stream) => {
    stream.respond({ ':status': 200 })
    stream.write('{')
  })
  const response = await one.ask('/files/list?path=/a', { headers: LINES, signal: signal() })
  const { code } = problem.parse(await response.json())
  assert.deepEqual({ status: response.status, code }, { status: 504, code: 'client_timeout' })
})

test('a download of a client that reads nothing for a while is waited for', async () => {
  const bytes = 32 * 1024 * 1024
  let source: ServerHttp2Stream | undefined
  await using one = await bench((stream) => {
    source = stream
    stream.respond({ ':status': 200, 'content-length': String(bytes) })
    stream.end(Buffer.alloc(bytes))
  })
  const client = connect(Number(new URL(one.url).port), '127.0.0.1')
  client.write(`GET /v1/sandboxes/${SANDBOX}/files?path=/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${one.key.text}\r\nconnection: close\r\n\r\n`)
  let got = 0
  client.on('data', (chunk) => {
    got += chunk.byteLength
  })
  await once(client, 'data', { signal: signal() })
  client.pause()
  const { promise: later, resolve } = Promise.withResolvers<void>()
  setTimeout(resolve, 4 * SHORT_MS)
  await later
  assert.equal(source?.writableFinished, false)
  client.resume()
  await once(client, 'end', { signal: signal() })
  assert.ok(got > bytes)
})

const REFUSERS: [name: string, ask: (one: Bench) => Promise<Response>][] = [
  ['a question', (one) => one.ask('/files/stat?path=/a', { signal: signal() })],
  ['input', (one) => one.ask('/processes/key:x/stdin?offset=0', { method: 'POST', body: 'input', signal: signal() })],
]

for (const [name, ask] of REFUSERS) {
  test(`${name} whose refusal never ends is client_timeout`, async () => {
    await using one = await bench((stream) => {
      stream.resume()
      stream.respond({ ':status': 404, 'content-type': 'application/json' })
      stream.write('{')
    })
    await toldLate(await ask(one))
  })
}

test('a host that has lost its guest refuses a HEAD as it refuses everything else, though its answer has no body', async () => {
  await using one = await bench((stream) => refuse(stream, 502, 'lost_contact'))
  assert.equal((await one.ask('/files?path=/a', { method: 'HEAD', signal: signal() })).status, 502)
  assert.equal((await one.ask('/files?path=/a', { signal: signal() })).status, 502)
  await using busy = await bench((stream) => refuse(stream, 503, 'overloaded'))
  assert.equal((await busy.ask('/files?path=/a', { method: 'HEAD', signal: signal() })).status, 503)
})
