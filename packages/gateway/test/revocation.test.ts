import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { CLOSE_CODE, LIMITS, ProblemSchema, parserOf } from '@sandglass/contract'
import { Bench, SANDBOX } from './peers/bench.ts'
import type { ScriptedKey } from './peers/control-plane.ts'
import { readEvents } from './peers/events.ts'
import type { SessionClient } from './peers/session-client.ts'

const problem = parserOf(ProblemSchema)
let bench: Bench
let key: ScriptedKey
beforeEach(async () => {
  bench = await Bench.withGuest()
  key = bench.control.addKey('member')
})
afterEach(() => bench[Symbol.asyncDispose]())

async function session(of = key): Promise<SessionClient> {
  const client = await bench.connect('/exec', { key: of })
  client.begin({ type: 'start', process: { argv: ['sleep', '60'] }, credit_bytes: 1_000 })
  await client.status('started')
  return client
}

async function within(ms: number, client: SessionClient, code: number): Promise<void> {
  const startedAt = performance.now()
  const closed = await client.closed
  assert.equal(closed.code, code, closed.reason)
  const tookMs = performance.now() - startedAt
  assert.ok(tookMs < ms, `${tookMs} ms`)
}

async function codeOf(response: Response): Promise<string> {
  return problem.parse(await response.json()).code
}

function revoke(of: ScriptedKey): void {
  of.revoked = true
  bench.control.emit({ type: 'key_revoked', api_key_id: of.id })
}

test('a revoked key closes its sessions and streams at once, and no others', async () => {
  const revoked = await session()
  const other = await session(bench.key)
  const events = readEvents(
    await bench.ask('/exec', {
      key,
      method: 'POST',
      body: '{"argv":["sleep","60"]}',
      headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    }),
  )
  await events.next()
  revoke(key)
  await within(LIMITS.revocationMs, revoked, CLOSE_CODE.revoked)
  assert.equal((await revoked.status('error')).code, 'session_revoked')
  const last = await events.next()
  assert.deepEqual([last.value?.type, last.value?.data['code']], ['error', 'session_revoked'])
  assert.equal(await codeOf(await bench.ask('/processes', { key })), 'unauthenticated')
  assert.equal((await bench.ask('/processes')).status, 200)
  other.send({ channel: 'signal', signal: { signal: 'KILL' } })
  await other.status('exit')
})

test('a revocation while the feed is cut is found by asking', async () => {
  const client = await session()
  bench.control.isFeedRefused = true
  bench.control.cutFeed()
  key.revoked = true
  await within(LIMITS.revocationMs, client, CLOSE_CODE.revoked)
})

test('a revocation while the feed is silent is found in the same time', async () => {
  const client = await session()
  bench.control.isFeedSilent = true
  key.revoked = true
  await within(LIMITS.revocationMs, client, CLOSE_CODE.revoked)
})

test('a key that is not revoked survives a lost feed and a control plane that is away for a while', async () => {
  const client = await session()
  bench.control.isDown = true
  bench.control.cutFeed()
  await delay(2_500)
  bench.control.isDown = false
  client.send({ channel: 'signal', signal: { signal: 'KILL' } })
  assert.equal((await client.status('exit')).process.signal, 'KILL')
})

test('without any answer a session ends with the lease of its route', async () => {
  bench.route(3_000)
  const client = await session()
  bench.control.isDown = true
  bench.control.cutFeed()
  await within(LIMITS.revocationMs, client, CLOSE_CODE.lostContact)
})

test('while the control plane answers, a session outlives the lease of its first route', async () => {
  bench.route(4_000)
  const client = await session()
  await delay(6_000)
  assert.equal(client.socket.readyState, client.socket.OPEN)
})

test('a deleted sandbox ends its sessions as ended, a newer generation as revoked', async () => {
  const ended = await session()
  bench.control.sandboxes.set(SANDBOX, { status: 'terminating', route: null })
  bench.control.emit({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: bench.generation + 1 })
  await within(LIMITS.revocationMs, ended, CLOSE_CODE.ended)
  assert.equal(await codeOf(await bench.ask('/processes')), 'sandbox_ended')

  bench.generation = 5
  bench.route()
  const moved = await session()
  bench.generation = 6
  bench.route()
  bench.control.emit({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: 6 })
  await within(LIMITS.revocationMs, moved, CLOSE_CODE.revoked)
})

test('a stopped sandbox ends its sessions as that, also when nobody tells of it', async () => {
  for (const isTold of [true, false]) {
    bench.route()
    const stopped = await session()
    bench.control.sandboxes.set(SANDBOX, { status: 'stopping', route: null })
    if (isTold) bench.control.emit({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: bench.generation + 1 })
    else {
      bench.control.isFeedRefused = true
      bench.control.cutFeed()
    }
    const { code } = await stopped.status('error')
    assert.equal(code, 'sandbox_stopped', isTold ? 'told' : 'found by asking')
    await within(LIMITS.revocationMs, stopped, CLOSE_CODE.ended)
    assert.equal(await codeOf(await bench.ask('/processes')), 'sandbox_stopped')
  }
})

test('a fenced host ends its sessions and streams at once, and lets nobody in by what was remembered', async () => {
  const client = await session()
  const events = readEvents(await bench.post('/exec', { argv: ['sleep', '60'] }, { accept: 'text/event-stream' }))
  await events.next()
  bench.control.sandboxes.set(SANDBOX, { status: 'failed', route: null })
  bench.control.emit({ type: 'host_fenced', host_id: `ho${'a'.repeat(16)}`, epoch: 2 })
  await within(LIMITS.revocationMs, client, CLOSE_CODE.revoked)
  const last = await events.next()
  assert.deepEqual([last.value?.type, last.value?.data['code']], ['error', 'session_revoked'])
  assert.equal(await codeOf(await bench.ask('/processes')), 'sandbox_failed')
})

test('a fence of another host, or of an epoch before the present one, closes nothing', async () => {
  const client = await session()
  bench.control.emit({ type: 'host_fenced', host_id: `ho${'b'.repeat(16)}`, epoch: 9 })
  bench.control.emit({ type: 'host_fenced', host_id: `ho${'a'.repeat(16)}`, epoch: 1 })
  client.send({ channel: 'signal', signal: { signal: 'KILL' } })
  assert.equal((await client.status('exit')).process.signal, 'KILL')
})

test('an event of a generation that is not newer closes nothing', async () => {
  const client = await session()
  bench.control.emit({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: bench.generation })
  await delay(500)
  assert.equal(client.socket.readyState, client.socket.OPEN)
})

test('a key whose role was lowered loses its sessions', async () => {
  const client = await session()
  key.role = 'viewer'
  bench.control.isFeedRefused = true
  bench.control.cutFeed()
  await within(LIMITS.revocationMs, client, CLOSE_CODE.revoked)
})

test('a question that was open when the key was revoked lets nobody in', async () => {
  const witness = bench.control.addKey('member')
  const seen = await session(witness)
  const questions = bench.control.questions.length
  bench.control.holdAnswers()
  const asked = bench.ask('/processes', { key })
  while (bench.control.questions.length === questions) await delay(5)
  revoke(key)
  // The feed comes in order: who has heard of this one has heard of that one.
  revoke(witness)
  await seen.closed
  bench.control.releaseAnswers()
  assert.equal(await codeOf(await asked), 'unauthenticated')
})
