/** Frames of a client that is hostile or broken: each gets its named error, and nothing else breaks. */
import assert from 'node:assert/strict'
import { get } from 'node:http'
import { after, before, test } from 'node:test'
import { CHANNEL, CLOSE_CODE, encodeClientFrame, LIMITS, WS_SUBPROTOCOL } from '@sandglass/contract'
import { Session } from '../src/session/session.ts'
import type { SessionAction, SessionEvent } from '../src/session/session-events.ts'
import { Bench } from './peers/bench.ts'
import { Refused } from './peers/session-client.ts'

let bench: Bench
before(async () => {
  bench = await Bench.withGuest()
})
after(() => bench[Symbol.asyncDispose]())

const START = encodeClientFrame({ channel: 'status', status: { type: 'start', process: { argv: ['sleep', '300'] }, credit_bytes: 1_000 } })
const json = (channel: number, value: unknown) => Buffer.concat([Buffer.of(channel), Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))])

const FIRST: [name: string, frame: Uint8Array | string][] = [
  ['text', '{"type":"start"}'],
  ['nothing', Buffer.alloc(0)],
  ['an unknown channel', Buffer.of(77)],
  ['a channel of the server', Buffer.of(CHANNEL.stdout, 1)],
  ['input before anything', Buffer.of(CHANNEL.stdin, 1)],
  ['a resize before anything', json(CHANNEL.resize, { cols: 80, rows: 24 })],
  ['a status that is not JSON', json(CHANNEL.status, '{')],
  ['a status that is not UTF-8', Buffer.of(CHANNEL.status, 0x22, 0xff, 0x22)],
  ['a status with an unknown field', json(CHANNEL.status, { type: 'start', process: { argv: ['true'] }, credit_bytes: 1, surprise: 1 })],
  ['a status of an unknown type', json(CHANNEL.status, { type: 'begin' })],
  ['credit without end', json(CHANNEL.status, { type: 'start', process: { argv: ['true'] }, credit_bytes: 2 ** 53 })],
  ['a status of the server', json(CHANNEL.status, { type: 'heartbeat' })],
]
const LATER: [name: string, frame: Uint8Array][] = [
  ['a second start', START],
  ['a credit of three bytes', Buffer.of(CHANNEL.credit, 0, 0, 1)],
  ['a half-close of another channel', Buffer.of(CHANNEL.halfClose, 1)],
  ['a signal that is none', json(CHANNEL.signal, { signal: 'EXPLODE' })],
  ['a resize with zero', json(CHANNEL.resize, { cols: 0, rows: 1 })],
  ['input beyond its credit', Buffer.concat([Buffer.of(CHANNEL.stdin), Buffer.alloc(1)])],
  ['a data frame that is too long', Buffer.concat([Buffer.of(CHANNEL.stdin), Buffer.alloc(LIMITS.frameBytes + 1)])],
]

for (const [name, frames] of [
  ...FIRST.map(([name, frame]) => [name, [frame]] as const),
  ...LATER.map(([name, frame]) => [`${name}, later`, [START, frame]] as const),
]) {
  test(`${name} is malformed_frame and 4400`, async () => {
    const client = await bench.connect('/exec')
    for (const frame of frames) client.socket.send(frame)
    assert.equal((await client.status('error')).code, 'malformed_frame')
    assert.equal((await client.closed).code, CLOSE_CODE.malformed)
  })
}

test('a message that is too large closes with 1009', async () => {
  const client = await bench.connect('/exec')
  client.socket.send(Buffer.alloc(LIMITS.controlFrameBytes + 2))
  assert.equal((await client.closed).code, CLOSE_CODE.tooBig)
})

test('a resize of a process without a terminal is told, a flood of signals is bounded', async () => {
  const resized = await bench.connect('/exec')
  resized.begin({ type: 'start', process: { argv: ['sleep', '300'] }, credit_bytes: 0 })
  await resized.status('started')
  resized.send({ channel: 'resize', size: { cols: 80, rows: 24 } })
  assert.equal((await resized.status('error')).code, 'not_a_terminal')
  const flooded = await bench.connect('/exec')
  flooded.begin({ type: 'start', process: { argv: ['sleep', '300'] }, credit_bytes: 0 })
  await flooded.status('started')
  for (let index = 0; index < 50 * LIMITS.sessionSignals; index += 1) flooded.send({ channel: 'signal', signal: { signal: 'CONT' } })
  assert.equal((await flooded.status('error')).code, 'limit_exceeded')
  assert.equal((await flooded.closed).code, CLOSE_CODE.policy)
})

async function refusedWith(status: number, connect: Promise<unknown>): Promise<void> {
  await assert.rejects(connect, (error: unknown) => error instanceof Refused && error.status === status && JSON.parse(error.body).status === status)
}

test('an upgrade without the subprotocol, from a page, without a key or to another path is refused', async () => {
  await refusedWith(400, bench.connect('/exec', { protocols: [] }))
  await refusedWith(400, bench.connect('/exec', { protocols: ['sandglass.v2'] }))
  await refusedWith(400, bench.connect('/exec?key=1'))
  await refusedWith(403, bench.connect('/exec', { headers: { origin: 'https://evil.example' } }))
  await refusedWith(401, bench.connect('/exec', { key: null }))
  await refusedWith(401, bench.connect('/exec', { key: null, headers: { authorization: `Bearer sgk_${'B'.repeat(43)}` } }))
  await refusedWith(404, bench.connect('/files'))
  await refusedWith(403, bench.connect('/exec', { key: bench.control.addKey('viewer') }))
})

test('a page whose origin is in the list is let in, exactly', async () => {
  await using other = await Bench.scripted(() => undefined, { origins: ['https://console.example'] })
  const client = await other.connect('/exec', { headers: { origin: 'https://console.example' } })
  assert.equal(client.socket.protocol, WS_SUBPROTOCOL)
  client.drop()
  await refusedWith(403, other.connect('/exec', { headers: { origin: 'https://console.example.evil' } }))
  await refusedWith(403, other.connect('/exec', { headers: { origin: 'http://console.example' } }))
})

test('an upgrade to HTTP/2 is answered in HTTP/1.1', async () => {
  const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAAP__' }
  const status = await new Promise((resolve, reject) => {
    get(`${bench.url}/healthz`, { headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).once('error', reject)
  })
  assert.equal(status, 200)
})

/** xorshift: the same seed is the same run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return Math.abs(state) % below
  }
}

const BASES: Uint8Array[] = [
  START,
  encodeClientFrame({ channel: 'status', status: { type: 'attach', process_id: 'key:x', credit_bytes: 10, stdin: true } }),
  encodeClientFrame({ channel: 'credit', bytes: 100 }),
  encodeClientFrame({ channel: 'stdin', bytes: Buffer.from('hello') }),
  encodeClientFrame({ channel: 'halfClose' }),
  encodeClientFrame({ channel: 'resize', size: { cols: 80, rows: 24 } }),
  encodeClientFrame({ channel: 'signal', signal: { signal: 'CONT' } }),
]

function mutated(random: (below: number) => number): Buffer {
  const frame = Buffer.from(BASES[random(BASES.length)] ?? START)
  const changes = random(4)
  for (let change = 0; change < changes && frame.byteLength > 0; change += 1) frame[random(frame.byteLength)] = random(256)
  return random(5) === 0 ? frame.subarray(0, random(frame.byteLength + 1)) : frame
}

test('seeded: the state machine takes any frames in any order, and always says why it ends', () => {
  for (let seed = 1; seed <= 2_000; seed += 1) {
    const random = randomOf(seed)
    const session = new Session({ opening: undefined, requestId: 'rq', newKey: () => 'gw-key', sharesInput: () => false })
    const actions: SessionAction[] = []
    for (let step = 0; step < 20 && !session.isOver; step += 1) {
      const event: SessionEvent = random(6) === 0 ? { type: 'tick' } : { type: 'message', bytes: mutated(random), isBinary: random(20) !== 0 }
      actions.push(...session.on(event))
    }
    const last = actions.at(-1)
    if (session.isOver) assert.equal(last?.do, 'close', `seed ${seed}`)
    const errors = actions.filter((action) => action.do === 'send' && action.frame.channel === 'status' && action.frame.status.type === 'error')
    assert.equal(errors.length, session.isOver ? 1 : 0, `seed ${seed}`)
    for (const action of errors) {
      if (action.do === 'send' && action.frame.channel === 'status' && action.frame.status.type === 'error') {
        assert.ok(
          ['malformed_frame', 'invalid_request', 'limit_exceeded', 'process_not_found'].includes(action.frame.status.code),
          `seed ${seed}: ${action.frame.status.code}`,
        )
      }
    }
  }
})

test('seeded: sockets full of broken frames leave the gateway as it was', async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const random = randomOf(seed * 7_919)
    const client = await bench.connect(random(3) === 0 ? '/terminal?shell=/bin/sh' : '/exec')
    for (let step = 0; step < 12; step += 1) client.socket.send(mutated(random), { binary: random(10) !== 0 })
    client.socket.close()
    const { code } = await client.closed
    assert.notEqual(code, CLOSE_CODE.internal, `seed ${seed}`)
  }
  const response = await bench.post('/exec', { argv: ['echo', 'well'] })
  assert.equal(response.status, 200)
})

test('without a first frame a session ends with client_timeout', () => {
  const session = new Session({ opening: undefined, requestId: 'rq', newKey: () => 'k', sharesInput: () => false })
  const actions = session.on({ type: 'startTimeout' })
  assert.deepEqual(
    actions.map((action) => action.do),
    ['send', 'close'],
  )
  assert.deepEqual(session.on({ type: 'startTimeout' }), [])
})
