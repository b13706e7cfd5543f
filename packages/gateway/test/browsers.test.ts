/** What browsers need: tickets in place of headers on a WebSocket, and answers for pages of listed origins only. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS, WS_SUBPROTOCOL } from '@sandglass/contract'
import { SessionTickets } from '../src/auth/session-tickets.ts'
import { silentLog, systemWorld } from '../src/index.ts'
import { Bench, SANDBOX } from './peers/bench.ts'
import { answerJson } from './peers/host.ts'
import { Refused } from './peers/session-client.ts'

const ORIGIN = 'https://console.example'

async function ticket(bench: Bench, action = 'exec'): Promise<string> {
  const response = await bench.post('/sessions', { action })
  assert.equal(response.status, 201)
  const { protocol, expires_in_ms: life }: { protocol: string; expires_in_ms: number } = JSON.parse(await response.text())
  assert.match(protocol, /^sandglass\.ticket\.[A-Za-z0-9_-]{43}$/)
  assert.ok(life <= 30_000)
  return protocol
}

/** As a page does: no authorization header, an origin. */
const open = (bench: Bench, protocol: string, path = '/exec', origin = ORIGIN) =>
  bench.connect(path, { key: null, protocols: [WS_SUBPROTOCOL, protocol], headers: { origin } })

async function refused(status: number, connecting: Promise<unknown>, code?: string): Promise<void> {
  await assert.rejects(connecting, (error) => {
    assert.ok(error instanceof Refused, String(error))
    assert.equal(error.status, status, error.body)
    if (code !== undefined) assert.equal(JSON.parse(error.body).code, code)
    return true
  })
}

test('a ticket opens one session, once, and the subprotocol that is chosen says nothing of it', async () => {
  await using bench = await Bench.scripted(() => undefined, { origins: [ORIGIN] })
  const protocol = await ticket(bench)
  const client = await open(bench, protocol)
  assert.equal(client.socket.protocol, WS_SUBPROTOCOL)
  client.drop()
  await refused(401, open(bench, protocol), 'unauthenticated')
})

test('a ticket is bound to its action and sandbox, and used up also at the wrong door', async () => {
  await using bench = await Bench.scripted(() => undefined, { origins: [ORIGIN] })
  const protocol = await ticket(bench, 'terminal')
  await refused(401, open(bench, protocol))
  await refused(401, open(bench, protocol, '/terminal'))
  const tickets = new SessionTickets(systemWorld(silentLog))
  const route = { host_id: 'h', data_plane_url: '', generation: 3, epoch: 1, valid_for_ms: 1 }
  const grant = { sandboxId: SANDBOX as never, keySha256: 'k', apiKeyId: 'a', role: 'member', route, askedAtMs: 0 } as const
  const other = tickets.issue(grant, 3, 'exec')
  assert.throws(() => tickets.redeem(other, 'sbl1zzzzzzzzzzzzzzzz', 'exec'), { code: 'unauthenticated' })
})

test('a ticket of an older generation, of a revoked key, or from an origin that is not listed opens nothing', async () => {
  await using bench = await Bench.scripted(({ stream }) => answerJson(stream, 500, { code: 'internal', detail: 'not asked for' }), { origins: [ORIGIN] })
  const old = await ticket(bench)
  bench.generation += 1
  bench.route()
  bench.control.emit({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: bench.generation })
  const deadline = Date.now() + 60_000
  const asked = bench.control.questions.length
  while (bench.control.questions.length === asked && Date.now() < deadline) await (await bench.ask('/processes')).body?.cancel()
  await refused(403, open(bench, old), 'session_revoked')
  await refused(403, open(bench, await ticket(bench), '/exec', 'https://console.example.evil'), 'forbidden')
  const revoked = await ticket(bench)
  bench.key.revoked = true
  bench.control.emit({ type: 'key_revoked', api_key_id: bench.key.id })
  for (;;) {
    const response = await bench.ask('/processes')
    await response.body?.cancel()
    if (response.status === 401) break
    assert.ok(Date.now() < deadline)
  }
  await refused(401, open(bench, revoked))
})

test('a ticket lives 30 seconds, and a key has only so many', () => {
  let nowMs = 0
  const tickets = new SessionTickets({ ...systemWorld(silentLog), nowMs: () => nowMs })
  const route = { host_id: 'h', data_plane_url: '', generation: 3, epoch: 1, valid_for_ms: 1 }
  const grant = { sandboxId: SANDBOX as never, keySha256: 'k', apiKeyId: 'a', role: 'member', route, askedAtMs: 0 } as const
  const first = tickets.issue(grant, 3, 'exec')
  nowMs = LIMITS.sessionTicketMs - 1
  assert.equal(tickets.redeem(first, SANDBOX, 'exec').generation, 3)
  const late = tickets.issue(grant, 3, 'exec')
  nowMs += LIMITS.sessionTicketMs
  assert.throws(() => tickets.redeem(late, SANDBOX, 'exec'), { code: 'unauthenticated' })
  for (let count = 0; count < LIMITS.sessionTicketsPerKey; count += 1) tickets.issue(grant, 3, 'exec')
  assert.throws(() => tickets.issue(grant, 3, 'exec'), { code: 'too_many_sessions' })
  tickets.issue({ ...grant, apiKeyId: 'another' }, 3, 'exec')
  nowMs += LIMITS.sessionTicketMs
  tickets.issue(grant, 3, 'exec')
})

test('a request for a ticket that says nothing we know is refused', async () => {
  await using bench = await Bench.scripted(() => undefined)
  assert.equal((await bench.post('/sessions', { action: 'shell' })).status, 400)
  assert.equal((await bench.ask('/sessions', { method: 'POST' })).status, 400)
})

test('preflights and answers name listed origins only; without a list nothing changes', async () => {
  await using bench = await Bench.scripted(() => undefined, { origins: [ORIGIN] })
  const preflight = (origin: string) =>
    bench.ask('/exec', {
      key: null,
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
    })
  const allowed = await preflight(ORIGIN)
  assert.equal(allowed.status, 204)
  assert.equal(allowed.headers.get('access-control-allow-origin'), ORIGIN)
  assert.match(allowed.headers.get('access-control-allow-headers') ?? '', /Authorization/)
  const stranger = await preflight('https://evil.example')
  assert.equal(stranger.headers.get('access-control-allow-origin'), null)
  assert.notEqual(stranger.status, 204)
  const answer = await bench.ask('/processes', { key: null, headers: { origin: ORIGIN } })
  assert.deepEqual([answer.status, answer.headers.get('access-control-allow-origin'), answer.headers.get('vary')], [401, ORIGIN, 'Origin'])
  await using closed = await Bench.scripted(() => undefined)
  const plain = await closed.ask('/processes', { key: null, headers: { origin: ORIGIN } })
  assert.deepEqual([plain.headers.get('access-control-allow-origin'), plain.headers.get('vary')], [null, null])
})
