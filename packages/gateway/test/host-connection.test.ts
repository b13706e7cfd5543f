/** Routes and connections to hosts: stale ones, lost ones, silent ones, many at once. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { CodedError, LIMITS, ProblemSchema, parserOf, type Route } from '@sandglass/contract'
import { RouteTable } from '../src/routes/route-table.ts'
import { Bench, SANDBOX } from './peers/bench.ts'
import { answerJson, type HostRequest, refuse, ScriptedHost } from './peers/host.ts'

const problem = parserOf(ProblemSchema)
let bench: Bench
beforeEach(async () => {
  bench = await Bench.scripted(emptyList)
})
afterEach(() => bench[Symbol.asyncDispose]())

function emptyList({ stream }: HostRequest): void {
  answerJson(stream, 200, { items: [] })
}

async function codeOf(response: Response): Promise<string> {
  return problem.parse(await response.json()).code
}

test('a route that the host calls stale is resolved again, once, and the request repeated', async () => {
  bench.host.script = (request) => {
    if (request.generation === 3) refuse(request.stream, 409, 'stale_generation')
    else emptyList(request)
  }
  assert.equal((await bench.ask('/processes')).status, 503)
  bench.generation = 4
  bench.route()
  assert.equal((await bench.ask('/processes')).status, 200)
  assert.deepEqual(
    bench.host.requests.map(({ generation }) => generation),
    [3, 3, 4],
  )
})

test('a route that stays stale is unavailable, not a loop', async () => {
  bench.host.script = ({ stream }) => refuse(stream, 409, 'stale_generation')
  const questions = bench.control.questions.length
  assert.equal(await codeOf(await bench.ask('/processes')), 'unavailable')
  assert.equal(bench.host.requests.length, 1)
  assert.equal(bench.control.questions.length, questions + 2)
})

test('a sandbox that moved to another host is found there', async () => {
  const name = `ho${'b'.repeat(16)}`
  await using other = await ScriptedHost.start(emptyList, { role: 'host', name })
  assert.equal((await bench.ask('/processes')).status, 200)
  bench.host.script = ({ stream }) => refuse(stream, 404, 'sandbox_not_found')
  const route: Route = { host_id: name, data_plane_url: other.url, generation: 4, epoch: 1, valid_for_ms: 30_000 }
  bench.control.sandboxes.set(SANDBOX, { status: 'ready', route })
  assert.equal((await bench.ask('/processes')).status, 200)
  assert.equal(other.requests.length, 1)
})

test('a connection that was cut is replaced at the next request', async () => {
  assert.equal((await bench.ask('/processes')).status, 200)
  bench.host.cut()
  assert.equal((await bench.ask('/processes')).status, 200)
  assert.equal(bench.host.sessionsOpened, 2)
})

test('what changes nothing is repeated when the connection breaks before the answer; a signal is not', async () => {
  let first = true
  bench.host.script = (request) => {
    if (!first) {
      emptyList(request)
      return
    }
    first = false
    bench.host.cut()
  }
  assert.equal((await bench.ask('/processes')).status, 200)
  first = true
  assert.equal(await codeOf(await bench.post('/processes/key:a/signal', { signal: 'USR1' })), 'lost_contact')
})

test('a host that takes no more requests is asked over a new connection, and old answers go on', async () => {
  let release: () => void = () => undefined
  bench.host.script = ({ stream }) => {
    stream.respond({ ':status': 200 })
    stream.write('first ')
    release = () => stream.end('second')
  }
  const slow = await bench.ask('/files?path=/a')
  for (const session of bench.host.sessions) session.goaway()
  bench.host.script = emptyList
  assert.equal((await bench.ask('/processes')).status, 200)
  assert.equal(bench.host.sessionsOpened, 2)
  release()
  assert.equal(await slow.text(), 'first second')
})

test('a host that cannot be reached is unavailable, soon', async () => {
  const route: Route = { host_id: `ho${'c'.repeat(16)}`, data_plane_url: 'http://127.0.0.1:1', generation: 3, epoch: 1, valid_for_ms: 30_000 }
  bench.control.sandboxes.set(SANDBOX, { status: 'ready', route })
  const startedAt = performance.now()
  const response = await bench.ask('/processes')
  assert.equal(response.headers.get('retry-after'), '1')
  assert.equal(await codeOf(response), 'unavailable')
  assert.ok(performance.now() - startedAt < LIMITS.guestConnectTimeoutMs, 'nobody waited for it')
})

test('a host agent that was started again at another address is found there, also by an upload', async () => {
  assert.equal((await bench.ask('/processes')).status, 200)
  await using restarted = await ScriptedHost.start(({ stream, method }) => {
    stream.resume()
    stream.on('end', () => answerJson(stream, 200, method === 'PUT' ? { size: 3, etag: '"e"' } : { items: [] }))
  })
  await bench.host[Symbol.asyncDispose]()
  const route: Route = { host_id: `ho${'a'.repeat(16)}`, data_plane_url: restarted.url, generation: 3, epoch: 1, valid_for_ms: 30_000 }
  bench.control.sandboxes.set(SANDBOX, { status: 'ready', route })
  assert.equal((await bench.ask('/files?path=/a', { method: 'PUT', body: 'abc' })).status, 200)
  assert.equal((await bench.ask('/processes')).status, 200)
})

test('a guest that does not answer is given up, and what may take long is not', async () => {
  await using slow = await Bench.scripted(() => undefined, { shortenMs: 300, shortensUpToMs: LIMITS.guestAnswerMs })
  const startedAt = performance.now()
  const response = await slow.ask('/processes')
  assert.equal(response.status, 504)
  assert.equal(await codeOf(response), 'client_timeout')
  assert.ok(performance.now() - startedAt < 20_000)
  slow.host.script = ({ stream }) => {
    stream.resume()
    setTimeout(() => answerJson(stream, 200, { size: 1, etag: '"e"' }), 700)
  }
  assert.equal((await slow.ask('/files?path=/a', { method: 'PUT', body: 'x' })).status, 200)
})

test('a refused request leaves its connection usable, with the body that nobody wanted', async () => {
  const socket = connect(Number(new URL(bench.url).port), '127.0.0.1')
  const body = Buffer.alloc(3_000_000)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString()
  })
  socket.write(`PUT /v1/sandboxes/${SANDBOX}/files?path=/a HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.byteLength}\r\n\r\n`)
  socket.write(body)
  socket.write(
    `POST /v1/sandboxes/${SANDBOX}/exec HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${bench.key.text}\r\ncontent-length: ${body.byteLength}\r\n\r\n`,
  )
  socket.write(body)
  socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  await once(socket, 'close')
  assert.match(text, /401 Unauthorized[\s\S]*413 Payload Too Large[\s\S]*200 OK/)
})

test('an address that is none is unavailable', async () => {
  for (const data_plane_url of ['ftp://x', 'nonsense', '']) {
    const route: Route = { host_id: `ho${'d'.repeat(16)}`, data_plane_url, generation: 3, epoch: 1, valid_for_ms: 30_000 }
    bench.control.sandboxes.set(SANDBOX, { status: 'ready', route })
    // A key that was not seen before is asked about.
    const key = bench.control.addKey('member')
    assert.equal(await codeOf(await bench.ask('/processes', { key })), 'unavailable')
  }
})

test('many slow streams get more connections, up to the sandbox’s limit of sessions', async () => {
  bench.host.script = ({ stream }) => {
    stream.respond({ ':status': 200 })
    stream.write('x')
  }
  const stop = new AbortController()
  const open = await Promise.all(Array.from({ length: LIMITS.sessionsPerSandbox }, () => bench.ask('/files?path=/a', { signal: stop.signal })))
  assert.ok(open.every(({ status }) => status === 200))
  assert.ok(bench.host.sessionsOpened >= 2 && bench.host.sessionsOpened <= 8, `${bench.host.sessionsOpened}`)
  const refused = await bench.ask('/processes')
  assert.equal(refused.status, 429)
  assert.equal(await codeOf(refused), 'too_many_sessions')
  stop.abort()
  bench.host.script = emptyList
  const deadline = Date.now() + 60_000
  while ((await bench.ask('/processes')).status !== 200) assert.ok(Date.now() < deadline, 'the sessions stay counted')
})

test('a download that its client does not read holds the host, not the gateway’s memory', async () => {
  let written = 0
  bench.host.script = ({ stream }) => {
    stream.respond({ ':status': 200 })
    const chunk = Buffer.alloc(64 * 1024)
    const pump = () => {
      while (!stream.destroyed && written < 200_000_000) {
        written += chunk.byteLength
        if (!stream.write(chunk)) break
      }
    }
    stream.on('drain', pump)
    pump()
  }
  const stop = new AbortController()
  await bench.ask('/files?path=/a', { signal: stop.signal })
  const deadline = Date.now() + 60_000
  for (let before = -1; before !== written; ) {
    assert.ok(Date.now() < deadline, 'it never stops')
    before = written
    await delay(1_000)
  }
  assert.ok(written < 16_000_000, `${written}`)
  stop.abort()
})

test('routes count from the question, and an older generation never replaces a newer one', () => {
  let now = 1_000
  const table = new RouteTable(() => now)
  const route = (generation: number, valid_for_ms: number): Route => ({ host_id: 'h', data_plane_url: 'u', generation, epoch: 1, valid_for_ms })
  const id = SANDBOX as Parameters<RouteTable['get']>[0]
  table.learn(id, route(2, 100), 950)
  now = 1_049
  assert.equal(table.get(id)?.generation, 2)
  now = 1_050
  assert.equal(table.get(id), undefined)
  table.learn(id, route(3, 100), 1_050)
  table.learn(id, route(2, 1_000), 1_050)
  assert.equal(table.get(id)?.generation, 3)
  table.forget(id, 3)
  assert.equal(table.get(id)?.generation, 3)
  table.forget(id, 4)
  assert.equal(table.get(id), undefined)
})

test('errors of the control plane are never blamed on the client', async () => {
  bench.control.isDown = true
  bench.control.emit({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: 3 })
  const response = await bench.ask('/processes')
  assert.equal(await codeOf(response), 'unavailable')
  assert.ok(new CodedError('unavailable').retryable)
})
