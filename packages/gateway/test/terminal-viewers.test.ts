/** Several clients at one terminal of a real guest: all see every byte, and one can take it over. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { CLOSE_CODE, LIMITS } from '@sandglass/contract'
import { WebSocket } from 'ws'
import { Bench } from './peers/bench.ts'
import { Refused, type SessionClient } from './peers/session-client.ts'
import { openTerminal, type } from './peers/terminal.ts'

/** More than fits between the program and clients that read nothing. */
const FLOOD_BYTES = 16_000_000
/** Below what heartbeats take to find a dead line. */
const SOON_MS = 2 * LIMITS.sessionHeartbeatMs - 2_000

let bench: Bench
before(async () => {
  bench = await Bench.withGuest({ hurries: { ms: LIMITS.terminalHoldMs / 3, shortMs: 500 } })
})
after(() => bench[Symbol.asyncDispose]())

const open = (query: string): Promise<SessionClient> => openTerminal(bench, query)
const sees = (client: SessionClient, text: string) => client.until(() => client.text().includes(text))

async function shell(): Promise<{ first: SessionClient; id: string }> {
  const first = await open('?shell=/bin/sh&cols=101&rows=33')
  return { first, id: (await first.status('started')).process.id }
}

test('all see the same bytes, also those who came later, and any of them may type', async () => {
  const { first, id } = await shell()
  const second = await open(`?id=${id}`)
  await second.status('started')
  await type(first, 'echo fr""om first\n')
  await sees(second, 'from first')
  await type(second, 'echo fr""om second\n')
  await sees(first, 'from second')
  const late = await open(`?id=${id}`)
  await type(late, 'exit\n')
  for (const client of [first, second, late]) await client.status('exit')
  assert.deepEqual(first.bytes('stdout'), second.bytes('stdout'))
  assert.deepEqual(first.bytes('stdout'), late.bytes('stdout'))
})

test('what a second one types is not taken for what the first one typed before it left', async () => {
  const { first, id } = await shell()
  const second = await open(`?id=${id}`)
  await second.status('started')
  await type(first, 'echo fr""om first\n')
  await sees(second, 'from first')
  first.drop()
  await first.closed
  await type(second, 'echo sec""ond; exit\n')
  await sees(second, 'second')
  await second.status('exit')
})

test('who only watches sees everything, and neither types nor resizes', async () => {
  const { first, id } = await shell()
  const viewer = await open(`?id=${id}&view=1`)
  assert.equal((await viewer.status('started')).stdin_credit_bytes, 0)
  viewer.send({ channel: 'resize', size: { cols: 10, rows: 10 } })
  await viewer.until(() => viewer.statuses.length > 0)
  await type(first, 'stty size\n')
  await sees(viewer, '33 101')
  await type(first, 'exit\n')
  await Promise.all([first.status('exit'), viewer.status('exit')])
  assert.deepEqual(first.bytes('stdout'), viewer.bytes('stdout'))
})

test('a takeover ends those who typed, with a close code of its own; viewers and the program go on', async () => {
  const { first, id } = await shell()
  const [other, viewer] = [await open(`?id=${id}`), await open(`?id=${id}&view=1`)]
  await Promise.all([other.status('started'), viewer.status('started')])
  const taker = await open(`?id=${id}&takeover=1`)
  await taker.status('started')
  for (const ended of [first, other]) {
    assert.equal((await ended.status('error')).code, 'terminal_taken_over')
    assert.equal((await ended.closed).code, CLOSE_CODE.takenOver)
  }
  await type(taker, 'echo st""ill here\n')
  await sees(viewer, 'still here')
  // Taken back.
  const back = await open(`?id=${id}&takeover=1`)
  assert.equal((await taker.closed).code, CLOSE_CODE.takenOver)
  await type(back, 'exit\n')
  await back.status('exit')
  await viewer.status('exit')
})

test('a takeover that does not come to be ends nobody, and one of another terminal neither', async () => {
  const { first, id } = await shell()
  const second = await shell()
  const none = await open('?id=praaaaaaaaaaaaaaaa&takeover=1')
  assert.equal((await none.status('error')).code, 'process_not_found')
  const taker = await open(`?id=${second.id}&takeover=1`)
  await second.first.closed
  await type(first, 'echo st""ill here; exit\n')
  await sees(first, 'still here')
  await type(taker, 'exit\n')
  await Promise.all([first.status('exit'), taker.status('exit')])
  assert.notEqual(id, second.id)
})

test('TE3: a holder whose line is dead blocks no takeover, and what it had typed is not typed later', async () => {
  const { first, id } = await shell()
  // Its socket reads nothing any more: it will not answer the close.
  first.socket.pause()
  const taker = await open(`?id=${id}&takeover=1`)
  await taker.status('started')
  await type(taker, 'echo mi""ne; exit\n')
  await sees(taker, 'mine')
  await taker.status('exit')
  first.drop()
})

async function flooded(): Promise<{ first: SessionClient; viewer: SessionClient; all: (client: SessionClient) => boolean }> {
  const { first, id } = await shell()
  const viewer = await open(`?id=${id}&view=1`)
  await viewer.status('started')
  for (const client of [first, viewer]) client.countOnly()
  return { first, viewer, all: (client) => client.received.stdout > FLOOD_BYTES }
}

const flood = (client: SessionClient): Promise<void> => type(client, `head -c ${FLOOD_BYTES} /dev/zero; exit\n`)

test('a viewer whose line is dead is cut, and holds back the others no longer than terminalHoldMs', async () => {
  const { first, viewer, all } = await flooded()
  viewer.socket.pause()
  await flood(first)
  await first.until(() => all(first), SOON_MS)
  await first.status('exit')
  viewer.drop()
})

test('a viewer that lives and reads nothing for a while is waited for, and loses nothing', async () => {
  const { first, viewer, all } = await flooded()
  viewer.isReading = false
  let asked = 0
  const { promise: askedOften, resolve } = Promise.withResolvers<void>()
  viewer.socket.on('ping', () => {
    asked += 1
    if (asked === 8) resolve()
  })
  await flood(first)
  await Promise.race([askedOften, viewer.closed])
  assert.equal(viewer.socket.readyState, WebSocket.OPEN)
  assert.ok(!all(first))
  viewer.isReading = true
  viewer.credit(LIMITS.outputCreditBytes)
  await Promise.all([first, viewer].map((client) => client.until(() => all(client))))
  assert.ok(viewer.statuses.every(({ type }) => type !== 'gap'))
})

for (const query of [
  '?takeover=1',
  '?view=1',
  '?id=praaaaaaaaaaaaaaaa&view=1&takeover=1',
  '?id=praaaaaaaaaaaaaaaa&view=1&cols=80',
  '?id=praaaaaaaaaaaaaaaa&takeover=yes',
]) {
  test(`${query} is refused before the upgrade`, async () => {
    await assert.rejects(bench.connect(`/terminal${query}`), (error: unknown) => error instanceof Refused && error.body.includes('"invalid_request"'))
  })
}
