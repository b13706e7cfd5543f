/** The change feed through broken connections: each change once, in order, from where the last connection ended. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError } from '@sandglass/contract/errors'
import { problemOf } from '@sandglass/contract/problem'
import { Sandglass } from '../src/client.ts'
import type { ChangeGap, EventsOptions, SandboxChange } from '../src/events.ts'
import { hurriedWorld } from './hurried-world.ts'
import { type Asked, problem, ScriptedServer } from './scripted-server.ts'

const AT = '2026-01-01T00:00:00.000Z'
const event = (name: string, position: number, data: object = {}): string =>
  `id: ${position}\nevent: ${name}\ndata: ${JSON.stringify({ position, ...data })}\n\n`
const change = (position: number): string =>
  event('change', position, { type: 'sandbox.ready', sandbox_id: 'sbl1aaaaaaaaaaaaaaaa', generation: position, reason: null, at: AT })

/** Each connection gets its text, then breaks; the last one stays open. */
async function feedOf(server: ScriptedServer, ...texts: string[]): Promise<void> {
  let turn = 0
  server.on('GET', /^\/v1\/events$/, (_asked, response) => {
    const text = texts[turn] ?? ''
    turn += 1
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`retry: 1000\n\n${text}`, () => {
      if (turn < texts.length) response.destroy()
    })
    return 'answered'
  })
}

function clientOf(server: ScriptedServer, keepBelowMs?: number) {
  const world = hurriedWorld(keepBelowMs)
  return { world, client: new Sandglass({ url: server.url, apiKey: `sgk_${'a'.repeat(43)}`, world }) }
}

async function take(server: ScriptedServer, count: number, options: EventsOptions = {}): Promise<(SandboxChange | ChangeGap)[]> {
  const seen: (SandboxChange | ChangeGap)[] = []
  for await (const one of clientOf(server).client.events(options)) {
    seen.push(one)
    if (seen.length === count) break
  }
  return seen
}

const sinces = (asked: readonly Asked[]): (string | null)[] => asked.map(({ query }) => query.get('since'))

test('goes on behind the last event of a connection that broke, wherever it broke', async () => {
  for (let cut = 0; cut <= change(1).length + change(2).length; cut += 1) {
    await using server = await ScriptedServer.start()
    const whole = change(1) + change(2)
    const seenBefore = cut >= whole.length ? 2 : cut >= change(1).length ? 1 : 0
    await feedOf(server, event('ready', 0) + whole.slice(0, cut), event('ready', seenBefore) + [1, 2, 3].slice(seenBefore).map(change).join(''))
    const seen = await take(server, 3)
    assert.deepEqual(
      seen.map(({ position }) => position),
      [1, 2, 3],
      `cut at ${cut}`,
    )
    assert.deepEqual(sinces(server.asked), [null, String(seenBefore)])
  }
})

test('what it gives, and where it begins', async () => {
  await using server = await ScriptedServer.start()
  await feedOf(server, event('gap', 9, { reason: 'expired', from: 5 }) + event('ready', 9) + event('heartbeat', 9) + event('news', 9) + change(10))
  const ready: number[] = []
  assert.deepEqual(await take(server, 2, { since: 4, onReady: (position) => ready.push(position) }), [
    { kind: 'gap', position: 9, reason: 'expired', from: 5 },
    { kind: 'change', position: 10, type: 'sandbox.ready', sandboxId: 'sbl1aaaaaaaaaaaaaaaa', generation: 10, reason: undefined, at: new Date(AT) },
  ])
  assert.deepEqual(sinces(server.asked), ['4'])
  assert.deepEqual(ready, [9])
})

test('a heartbeat moves the place to come back to', async () => {
  await using server = await ScriptedServer.start()
  await feedOf(server, event('ready', 3) + event('heartbeat', 7), event('ready', 7) + change(8))
  assert.equal((await take(server, 1))[0]?.position, 8)
  assert.deepEqual(sinces(server.asked), [null, '7'])
})

test('an `error` event that may pass is tried again; a revoked key is not', async () => {
  await using server = await ScriptedServer.start()
  const error = (code: 'unavailable' | 'session_revoked') => `event: error\ndata: ${JSON.stringify(problemOf(new CodedError(code)))}\n\n`
  await feedOf(server, event('ready', 1) + error('unavailable'), change(2) + error('session_revoked'))
  const events = clientOf(server).client.events()
  assert.equal((await events.next()).value?.position, 2)
  await assert.rejects(events.next(), { code: 'session_revoked' })
})

test('a refusal that does not pass is thrown at once', async () => {
  for (const code of ['unauthenticated', 'too_many_sessions'] as const) {
    await using server = await ScriptedServer.start()
    server.on('GET', /events/, () => problem(code))
    await assert.rejects(take(server, 1), { code })
    assert.equal(server.asked.length, 1)
  }
})

test('a connection that falls silent is given up, and the next one goes on where it was', async () => {
  await using server = await ScriptedServer.start()
  const stop = new AbortController()
  server.on('GET', /events/, (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event('ready', 1))
    if (server.asked.length === 3) stop.abort(new Error('seen enough'))
    return 'answered'
  })
  // Its silence is over at once; the time to open is real.
  await assert.rejects(clientOf(server, 40_000).client.events({ signal: stop.signal }).next(), /seen enough/)
  assert.deepEqual(sinces(server.asked).slice(0, 1), [null])
})

test('a server that stays away is an error in the end', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /events/, () => problem('unavailable'))
  await assert.rejects(take(server, 1, { reconnectMs: 5_000 }), { code: 'unavailable' })
  assert.ok(server.asked.length > 3)
})
