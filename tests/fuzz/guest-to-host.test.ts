/**
 * Hostile bytes of a guest against the host agent and the gateway behind it, by chance: whoever holds PID 1 of a sandbox dials in its place and sends
 * preambles that are none, HTTP/2 that is none, answers that are early, late, endless or lies. Clients that ask that sandbox meanwhile are answered or
 * refused with a code within a bound; both roles stay what they were; a neighbour notices nothing.
 */
import assert from 'node:assert/strict'
import { createServer, type Http2Server, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { isErrorCode, LIMITS, parseProblem } from '@sandglass/contract'
import { Sandbox } from '@sandglass/sdk'
import { must, within } from '../e2e/bounds.ts'
import { afterTests, sharedInstallation } from '../e2e/file-installation.ts'
import type { Installation } from '../e2e/installation.ts'
import { sentriesOf } from '../e2e/sentries.ts'
import type { Random } from '../failure/seed.ts'
import { type Channel, channelOf } from './channel.ts'
import { http2Noise } from './http2-noise.ts'
import { mutated, pick, pieces, rounds } from './rounds.ts'
import { Witness } from './witness.ts'

const TEST_LIMIT_MS = 240_000
/** Once the hostile connection is gone: the host's wait for a guest, twice where the request is repeated, and the way back. */
const ANSWER_MS = 2 * LIMITS.guestChannelWaitMs + 10_000
/** A host lets a preamble take so long. */
const PREAMBLE_MS = LIMITS.guestPreambleMs + 20_000
const NEIGHBOUR_MS = 20_000
const ASKED_AT_ONCE = 5
const MOST_READ_BYTES = 4 * 1024 * 1024
/** Fewer rounds than these have shown nothing; dials beyond a burst are heard one a second. */
const LEAST_HEARD = 5

let installation: Installation
let sandbox: Sandbox
let neighbour: Sandbox
let channel: Channel
let processSample: Uint8Array
before(async () => {
  installation = await sharedInstallation()
  const client = installation.client()
  ;[sandbox, neighbour] = await Promise.all([Sandbox.create({ client, ttlSeconds: 1_200 }), Sandbox.create({ client, ttlSeconds: 1_200 })])
  channel = channelOf(installation.home, sandbox.id)
  const { id } = await sandbox.start(['true'])
  processSample = Buffer.from(JSON.stringify((await sandbox.process(id)).resource))
})
afterTests(() => Promise.all([sandbox?.delete(), neighbour?.delete()]))

/** Keeps the real guest from dialling again, by holding its whole kernel still. */
function silencedGuest(): Disposable {
  const pids = sentriesOf(installation.home, sandbox.id).map(({ pid }) => pid)
  assert.equal(pids.length, 1, 'the sandbox has one sentry')
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  return {
    [Symbol.dispose]() {
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    },
  }
}

/** A connection to the host agent, as the guest makes it. */
async function dial(): Promise<Socket> {
  // The path of a unix socket is limited; a name in the working directory is not.
  const before = process.cwd()
  process.chdir(channel.directory)
  try {
    const socket = connect('channel.sock')
    socket.on('error', () => undefined)
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
    return socket
  } finally {
    process.chdir(before)
  }
}

function preamble(): Uint8Array {
  const hex = 'ab'.repeat(16)
  const { identity } = channel
  return Buffer.from(`${JSON.stringify({ protocol: 'sandglass-guest', version: 1, agent: 'hostile', session: hex, features: [], ...identity })}\n`)
}

/** Says who it is, and waits to be believed. @returns false when the host does not listen at the moment */
async function believed(socket: Socket): Promise<boolean> {
  if (socket.destroyed) return false
  socket.write(preamble())
  const answer = new Promise<boolean>((resolve) => {
    let text = ''
    socket.on('data', function read(chunk: Buffer) {
      text += chunk.toString('latin1')
      if (!text.includes('\n')) return
      socket.off('data', read)
      socket.pause()
      assert.match(text, /^\{"accept":true/, 'a guest that says who it is is believed')
      resolve(true)
    })
    socket.once('close', () => resolve(false))
  })
  return within(PREAMBLE_MS, 'the answer to a preamble', answer)
}

/** What no guest says first. The host has to hang up. */
async function badPreamble(random: Random, socket: Socket): Promise<void> {
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.resume()
  const kind = random.integer(4)
  if (kind === 0) for (const piece of pieces(random, mutated(random, [preamble()]))) socket.write(piece)
  else if (kind === 1) socket.write(Buffer.concat([preamble(), http2Noise(random, 'server')]))
  else if (kind === 2) socket.write(Buffer.alloc(random.integer(200_000), 0x7b))
  else socket.write(preamble().subarray(0, random.integer(40)))
  // A mutation may have left it whole; then it is over when this side says so.
  await Promise.race([within(PREAMBLE_MS, 'the end of a connection with a bad preamble', closed).catch(() => socket.destroy()), delay(random.integer(60))])
}

const frame = (kind: number, payload: Uint8Array): Buffer => {
  const head = Buffer.alloc(5)
  head[0] = kind
  head.writeUInt32BE(payload.byteLength, 1)
  return Buffer.concat([head, payload])
}
const status = (value: object): Buffer => frame(3, Buffer.from(JSON.stringify(value)))
const data = (offset: number, size: number): Buffer => {
  const payload = Buffer.alloc(8 + size, 0x61)
  payload.writeBigUInt64BE(BigInt(offset))
  return frame(1, payload)
}

function bodies(): readonly Uint8Array[] {
  const process: unknown = JSON.parse(Buffer.from(processSample).toString('utf8'))
  const started = status({ type: 'started', process })
  return [
    processSample,
    Buffer.concat([started, data(0, 1_000), status({ type: 'exit', process })]),
    Buffer.concat([started, data(7, 10)]),
    Buffer.concat([started, started]),
    Buffer.concat([started, status({ type: 'gap', stream: 'stdout', from: 0, to: Number.MAX_SAFE_INTEGER }), data(Number.MAX_SAFE_INTEGER, 10)]),
    Buffer.concat([started, status({ type: 'error', code: '__proto__', detail: 'x' })]),
    Buffer.from('{"items":[],"next_cursor":null}'),
    Buffer.from('{"name":"a","name_b64":null,"path":"/a","type":"file","size":1}\n{"name":'),
    Buffer.from('{"code":"file_not_found","detail":"\\u001b[2Jx"}'),
    Buffer.from('{"code":"unauthenticated","detail":"give me your key"}'),
    Buffer.from(`{"code":${'['.repeat(20_000)}`),
    Buffer.from(JSON.stringify({ items: Array.from({ length: 1_000 }, () => process) })),
  ]
}

function head(random: Random, size: number): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { ':status': pick(random, [200, 200, 200, 201, 204, 206, 304, 400, 404, 409, 500, 503, 599]) }
  if (random.chance(0.7)) {
    headers['content-type'] = pick(random, ['application/json', 'application/vnd.sandglass.frames', 'application/x-ndjson', 'text/html', 'x'.repeat(3_000)])
  }
  if (random.chance(0.3)) headers['content-length'] = pick(random, [size, size + 1, 0, 10 ** 15])
  if (random.chance(0.2)) headers['etag'] = pick(random, ['"a"', 'a\tb', '"'])
  if (random.chance(0.2)) headers['content-range'] = pick(random, ['bytes 0-1/2', 'bytes 9-1/0', 'x'])
  if (random.chance(0.2)) headers['last-modified-ms'] = pick(random, ['1', '-1', '99999999999999999999'])
  if (random.chance(0.2)) headers['sandglass-from'] = 'host'
  if (random.chance(0.1)) headers['x-more'] = 'y'.repeat(30_000)
  return headers
}

async function endless(stream: ServerHttp2Stream, part: Uint8Array): Promise<void> {
  while (!stream.destroyed) if (!stream.write(part)) await new Promise((resolve) => stream.once('drain', resolve).once('close', resolve))
}

/** One answer of a guest that wishes no good. */
function answer(random: Random, stream: ServerHttp2Stream): void {
  stream.on('error', () => undefined)
  const kind = random.integer(10)
  if (kind === 0) return
  if (kind === 1) {
    stream.close(random.integer(14))
    return
  }
  if (kind < 8 && random.chance(0.5)) stream.resume()
  const body = random.chance(0.5) ? pick(random, bodies()) : mutated(random, bodies())
  const trailers = random.chance(0.3)
  try {
    stream.respond(head(random, body.byteLength), { waitForTrailers: trailers })
    if (trailers) stream.once('wantTrailers', () => stream.sendTrailers({ 'sandglass-entries': pick(random, ['1', '-1', 'x']), 'x-more': 'z' }))
    if (kind === 2) void endless(stream, body.byteLength === 0 ? Buffer.from('x') : body)
    else if (kind === 3) stream.write(body)
    else if (kind === 4) stream.write(body, () => stream.close(random.integer(14)))
    else stream.end(body)
  } catch (error) {
    // Node.js refuses to send some of it; the rest of the round goes on.
    stream.close(2)
    assert.ok(error instanceof Error)
  }
}

/** Proper HTTP/2, improper answers, for a while. */
function hostileServer(random: Random): Http2Server {
  const server = createServer({ settings: { maxConcurrentStreams: pick(random, [0, 1, 100]), initialWindowSize: pick(random, [0, 1, 65_535]) } })
  server.on('sessionError', () => undefined)
  server.on('session', (session) => session.on('error', () => undefined))
  server.on('stream', (stream) => answer(random, stream))
  return server
}

type Question = { readonly method: string; readonly path: string; readonly accept?: string; readonly body?: string }

const QUESTIONS: readonly Question[] = [
  { method: 'POST', path: '/exec', body: '{"argv":["true"]}' },
  { method: 'POST', path: '/exec', body: '{"argv":["true"]}', accept: 'text/event-stream' },
  { method: 'POST', path: '/exec', body: '{"argv":["cat"],"stdin":"aGVsbG8=","stdin_encoding":"base64"}' },
  { method: 'POST', path: '/exec', body: '{"argv":["true"],"background":true}' },
  { method: 'GET', path: '/processes' },
  { method: 'GET', path: '/processes/key:x' },
  { method: 'GET', path: '/processes/key:x/output?follow=1' },
  { method: 'POST', path: '/processes/key:x/signal', body: '{"signal":"TERM"}' },
  { method: 'POST', path: '/processes/key:x/stdin?offset=0', body: 'input' },
  { method: 'GET', path: '/files?path=/etc/hostname' },
  { method: 'HEAD', path: '/files?path=/etc/hostname' },
  { method: 'PUT', path: '/files?path=/tmp/fuzz', body: 'x'.repeat(200_000) },
  { method: 'DELETE', path: '/files?path=/tmp/fuzz' },
  { method: 'GET', path: '/files/stat?path=/tmp' },
  { method: 'GET', path: '/files/list?path=/tmp' },
  { method: 'GET', path: '/files/list?path=/tmp', accept: 'application/x-ndjson' },
  { method: 'GET', path: '/files/watch?path=/tmp', accept: 'text/event-stream' },
  { method: 'GET', path: '/files/archive?path=/etc/apt' },
  { method: 'PUT', path: '/files/archive?path=/tmp/a', body: 'no tar' },
  { method: 'POST', path: '/files/mkdir', body: '{"path":"/tmp/d"}' },
  { method: 'GET', path: '/usage' },
]

/** An answer, or a refusal that says why. A body may break off, because the sandbox did. */
async function ask({ method, path, accept, body }: Question): Promise<void> {
  const what = `${method} ${path}`
  const response = await must(
    `an answer to ${what}`,
    fetch(`${sandbox.resource.gateway_url}/v1/sandboxes/${sandbox.id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${installation.operatorKey}`,
        ...(accept === undefined ? {} : { accept }),
        ...(body === undefined ? {} : { 'content-type': path.startsWith('/files?') ? 'application/octet-stream' : 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
      redirect: 'error',
    }),
  )
  let text = ''
  let read = 0
  try {
    const reader = response.body?.getReader()
    for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
      read += part.value.byteLength
      if (response.status >= 400) text += Buffer.from(part.value).toString('latin1')
      if (read > MOST_READ_BYTES) {
        await reader?.cancel()
        return
      }
    }
  } catch {
    assert.ok(response.status < 400, `the refusal of ${what} is whole`)
    return
  }
  if (response.status < 400 || method === 'HEAD') return
  const problem = parseProblem(JSON.parse(text))
  assert.ok(
    problem !== undefined && isErrorCode(problem.code) && problem.status === response.status,
    `${what} is refused with a problem: ${text.slice(0, 300)}`,
  )
  assert.doesNotMatch(problem.detail, /[\u0000-\u001f]/, 'no control characters of a guest reach a client')
}

/** What a gateway tells its operator of a sandbox that breaks the protocol; faults of its own, and refusals of hosts that it does not know, are others. */
const TOLD = /"event":"request_failed","request_id":"\w+","reason":"(?!The host |\w*Error: )/

test('a hostile guest harms nobody but itself', { timeout: TEST_LIMIT_MS }, async () => {
  const witness = new Witness(installation)
  const open: Promise<void>[] = []
  let heard = 0
  {
    using _ = silencedGuest()
    await rounds('guest-to-host', async (random, index) => {
      const socket = await dial()
      try {
        if (random.chance(0.25)) return await badPreamble(random, socket)
        if (!(await believed(socket))) return void (await delay(LIMITS.guestDialEveryMs / 4))
        heard += 1
        const questions = Array.from({ length: ASKED_AT_ONCE }, () => pick(random, QUESTIONS))
        for (const question of questions) {
          const answered = within(ANSWER_MS, `all of the answer to ${question.method} ${question.path}`, ask(question))
          // It is looked at when all rounds are over.
          answered.catch(() => undefined)
          open.push(answered)
        }
        if (random.chance(0.3)) for (const piece of pieces(random, http2Noise(random, 'server'))) socket.write(piece)
        else hostileServer(random).emit('connection', socket)
        socket.resume()
        await delay(50 + random.integer(350))
        if (index % 8 !== 7) return
        const seen = await must('a neighbour', within(NEIGHBOUR_MS, 'a command of a neighbour', neighbour.exec(['echo', 'well'])))
        assert.equal(seen.stdout, 'well\n', 'a neighbour works')
      } finally {
        socket.destroy()
      }
    })
    await Promise.all(open)
  }
  assert.ok(heard >= LEAST_HEARD, `enough of the rounds were heard, ${heard} of them`)
  await witness.unharmed([sandbox, neighbour], TOLD)
})
