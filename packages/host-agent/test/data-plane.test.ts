/** One request of a gateway joined to one request of a guest: every byte, every end, in both directions. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { test } from 'node:test'
import { CodedError, LIMITS, type RefusalReason } from '@sandglass/contract'
import type { KeyAndCertificate, PeerRefused } from '@sandglass/identity'
import { recordSpans, TEST_AUTHORITY, TestAuthority } from '@sandglass/testkit'
import { NO_USAGE } from '../src/cgroups/runtime-usage.ts'
import { DataPlaneServer } from '../src/data-plane/data-plane-server.ts'
import { parseTarget } from '../src/data-plane/guest-route.ts'
import { statusFromGuest } from '../src/data-plane/header-filter.ts'
import { silentLog } from '../src/log.ts'
import { ChannelUnderTest, SANDBOX } from './support/channel-directory.ts'
import { GatewayClient } from './support/gateway-client.ts'
import { ScriptedGuest, type Serve } from './support/scripted-guest.ts'
import { until } from './support/until.ts'

const MIB = 1024 * 1024

class Plane {
  readonly under: ChannelUnderTest
  readonly server: DataPlaneServer
  readonly gateway: GatewayClient
  readonly guest: ScriptedGuest
  readonly spans: ReturnType<typeof recordSpans>['spans']

  private constructor(under: ChannelUnderTest, server: DataPlaneServer, gateway: GatewayClient, guest: ScriptedGuest, spans: Plane['spans']) {
    this.under = under
    this.server = server
    this.gateway = gateway
    this.guest = guest
    this.spans = spans
  }

  static async open(serve: Serve): Promise<Plane> {
    const under = await ChannelUnderTest.open()
    const { tracing, spans } = recordSpans()
    const server = new DataPlaneServer({
      identity: TEST_AUTHORITY.identity({ role: 'host', name: HOST }),
      refusals: { note: (refused) => refusedPeers.push(refused) },
      tracing,
      log: silentLog,
      firstCommandBegins: () => {
        commands += 1
        return () => {
          commands += 1
        }
      },
      route: ({ generation }) => {
        if (generation !== 1) throw new CodedError('stale_generation')
        return under.channel
      },
      usage: ({ generation }) => {
        if (generation !== 1) throw new CodedError('stale_generation')
        return { at_ms: 5, ...NO_USAGE, cpu_ms: 7 }
      },
    })
    const url = await server.listen({ address: '127.0.0.1', port: 0 })
    const guest = await ScriptedGuest.dial(under.path, serve)
    return new Plane(under, server, new GatewayClient(url, SANDBOX, 1), guest, spans)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.gateway.close()
    await this.server.close()
    await this.under[Symbol.asyncDispose]()
  }
}

const HOST = `ho${'a'.repeat(16)}`
const refusedPeers: PeerRefused[] = []
/** Noted by all planes of this file. */
let commands = 0

const code = (body: Buffer): string => JSON.parse(body.toString('utf8')).code

const DAY_MS = 24 * 3_600_000
const stranger = new TestAuthority()
const notLetIn: [what: string, own: Partial<KeyAndCertificate>, reason: RefusalReason, code: string][] = [
  ['nobody', {}, 'no_certificate', 'certificate_required'],
  ['a gateway of another CA', stranger.pair({ role: 'gateway', name: 'test' }), 'wrong_ca', 'certificate_refused'],
  ['a gateway of another region', TEST_AUTHORITY.pair({ role: 'gateway', name: 'test', region: 'x1' }), 'not_an_identity', 'certificate_refused'],
  ['a host', TEST_AUTHORITY.pair({ role: 'host', name: HOST }), 'wrong_role', 'certificate_refused'],
  ['a control plane', TEST_AUTHORITY.pair({ role: 'control-plane', name: 'one' }), 'wrong_role', 'certificate_refused'],
  ['an expired gateway', TEST_AUTHORITY.pair({ role: 'gateway', name: 'test', atMs: Date.now() - 2 * DAY_MS - 60_000 }), 'expired', 'certificate_refused'],
  [
    'a gateway of the day after tomorrow',
    TEST_AUTHORITY.pair({ role: 'gateway', name: 'test', atMs: Date.now() + DAY_MS + 60_000 }),
    'not_yet_valid',
    'certificate_refused',
  ],
]
for (const [what, own, reason, expected] of notLetIn) {
  test(`${what} is not let in, is told why, and is told on`, async () => {
    await using plane = await Plane.open((stream) => stream.end())
    refusedPeers.length = 0
    const client = new GatewayClient(plane.server.url, SANDBOX, 1, own)
    const answer = await client.send('GET', '/v1/health')
    client.close()
    assert.equal(code(answer.body), expected)
    assert.equal(answer.headers['sandglass-from'], 'host')
    assert.deepEqual(
      refusedPeers.map((refused) => refused.reason),
      [reason],
    )
  })
}

test('a gateway whose clock is hours away from the host’s is let in', async () => {
  await using plane = await Plane.open((stream) => {
    stream.respond({ ':status': 200 })
    stream.end()
  })
  for (const hours of [-47, -12, 12, 23]) {
    const client = new GatewayClient(plane.server.url, SANDBOX, 1, TEST_AUTHORITY.pair({ role: 'gateway', name: 'test', atMs: Date.now() + hours * 3_600_000 }))
    assert.equal((await client.send('GET', '/v1/health')).status, 200, `${hours} h`)
    client.close()
  }
})

const refusedTargets: [method: string, path: string, expected: string][] = [
  ['PUT', '/v1/identity', 'route_not_found'],
  ['GET', '/v1/identity', 'route_not_found'],
  ['POST', '/v1/health', 'method_not_allowed'],
  ['PATCH', '/v1/files', 'method_not_allowed'],
  ['GET', '/v1/files/../identity', 'route_not_found'],
  ['GET', '/v1/processes/a/b/output', 'route_not_found'],
  ['GET', '/v2/health', 'route_not_found'],
  ['GET', `/v1/files?path=/${'a'.repeat(LIMITS.dataPlanePathBytes)}`, 'limit_exceeded'],
]
for (const [method, path, expected] of refusedTargets) {
  test(`${method} ${path.slice(0, 40)} is not forwarded: ${expected}`, () => {
    assert.throws(() => parseTarget(method, `/sandboxes/${SANDBOX}/generations/1${path}`), { code: expected })
  })
}

test('targets that name no sandbox or no generation are refused', () => {
  for (const url of [
    '/',
    '/v1/health',
    '/sandboxes/nope/generations/1/v1/health',
    `/sandboxes/${SANDBOX}/v1/health`,
    `/sandboxes/${SANDBOX}/generations/-1/v1/health`,
  ]) {
    assert.throws(() => parseTarget('GET', url), CodedError)
  }
})

test('paths reach the guest byte for byte', () => {
  const path = '/v1/files?path=%2Froot%2F%ff%20a%26b&user=root'
  assert.equal(parseTarget('GET', `/sandboxes/${SANDBOX}/generations/7${path}`).path, path)
})

test('the guest is told the trace of a request, and its answer ends the span', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  let told: unknown
  await using plane = await Plane.open((stream, headers) => {
    told = headers['traceparent']
    stream.respond({ ':status': 200 })
    stream.end()
  })
  await plane.gateway.send('GET', '/v1/processes/pr1/output', undefined, { traceparent })
  const span = await until('the span ends', () => (plane.spans[0]?.ended === undefined ? undefined : plane.spans[0]))
  assert.equal(span.name, 'guest GET /v1/processes')
  assert.equal(span.start.parent, traceparent)
  assert.equal(told, span.traceparent)
})

test('a body whose length was announced is over with its last byte, in both directions', async () => {
  let arrived = ''
  await using plane = await Plane.open((stream) => {
    stream.on('data', (chunk: Buffer) => {
      arrived += chunk
    })
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-length': '3' })
      // The end of the answer never comes by itself.
      stream.write('abc')
    })
  })
  const stream = plane.gateway.open('POST', '/v1/exec', { 'content-length': '5' })
  stream.write('12345')
  let answer = ''
  for await (const chunk of stream) answer += chunk
  assert.deepEqual([arrived, answer], ['12345', 'abc'])
  stream.destroy()
})

test('what a sandbox uses is answered by the host, for that generation only, and the guest does not hear of it', async () => {
  let requests = 0
  await using plane = await Plane.open((stream) => {
    requests += 1
    stream.end()
  })
  const answer = await plane.gateway.send('GET', '/v1/usage')
  assert.deepEqual([answer.status, answer.headers['sandglass-from'], JSON.parse(answer.body.toString('utf8')).cpu_ms], [200, 'host', 7])
  const other = new GatewayClient(plane.server.url, SANDBOX, 2)
  assert.equal(code((await other.send('GET', '/v1/usage')).body), 'stale_generation')
  other.close()
  for (const [method, path] of [
    ['POST', '/v1/usage'],
    ['GET', '/v1/usage?x=1'],
    ['GET', '/v1/usage/'],
  ] as const)
    assert.equal(code((await plane.gateway.send(method, path)).body), 'route_not_found')
  assert.equal(requests, 0)
})

test('the first request that starts a program is told to the host when it comes and when it is over, and no other is', async () => {
  const serve = (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200 })
    stream.end()
  }
  await using plane = await Plane.open(serve)
  commands = 0
  for (const [method, path] of [
    ['GET', '/v1/processes'],
    ['POST', '/v1/processes/pr1/signal'],
    ['POST', '/v1/files/mkdir'],
  ] as const)
    await plane.gateway.send(method, path)
  assert.equal(commands, 0)
  for (const path of ['/v1/exec', '/v1/exec?kill_on_disconnect=1', '/v1/processes']) await plane.gateway.send('POST', path)
  await until('the first is over', () => commands >= 2 || undefined)
  assert.equal(commands, 2, 'it alone was told of')
  await using other = await Plane.open(serve)
  await other.gateway.send('POST', '/v1/processes')
  await until('that of another sandbox is over', () => commands === 4 || undefined)
})

test('another generation is refused before the guest hears of it', async () => {
  let requests = 0
  await using plane = await Plane.open((stream) => {
    requests += 1
    stream.end()
  })
  const other = new GatewayClient(plane.server.url, SANDBOX, 2)
  const answer = await other.send('GET', '/v1/health')
  other.close()
  assert.deepEqual([answer.status, code(answer.body), requests], [409, 'stale_generation', 0])
})

test('headers cross by allow-list only, each way', async () => {
  let seen: IncomingHttpHeaders = {}
  await using plane = await Plane.open((stream, headers) => {
    seen = headers
    stream.respond({ ':status': 206, etag: '"x"', 'content-range': 'bytes 0-1/2', 'set-cookie': 'a=b', 'sandglass-from': 'host', 'x-evil': '1' })
    stream.end('ab')
  })
  const answer = await plane.gateway.send('GET', '/v1/files?path=/a', undefined, { range: 'bytes=0-1', 'x-forwarded-for': '1.2.3.4', cookie: 'c=d' })
  assert.deepEqual([seen.range, seen.authorization, seen['x-forwarded-for'], seen.cookie], ['bytes=0-1', undefined, undefined, undefined])
  assert.deepEqual([answer.status, answer.headers.etag, answer.headers['content-range']], [206, '"x"', 'bytes 0-1/2'])
  for (const name of ['set-cookie', 'sandglass-from', 'x-evil']) assert.equal(answer.headers[name], undefined)
})

test('64 MiB go up and come back byte for byte, and trailers follow', async () => {
  await using plane = await Plane.open((stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'sandglass-entries': '3', 'x-evil': '1' }))
    stream.pipe(stream)
  })
  const body = randomBytes(64 * MIB)
  const answer = await plane.gateway.send('PUT', '/v1/files?path=/a', body)
  assert.ok(answer.body.equals(body))
  assert.deepEqual([answer.trailers['sandglass-entries'], answer.trailers['x-evil']], ['3', undefined])
  assert.deepEqual([plane.server.counters.bytesUp, plane.server.counters.bytesDown], [body.byteLength, body.byteLength])
})

test('answers without a body end, with HEAD and with 204', async () => {
  await using plane = await Plane.open((stream, headers) => {
    if (headers[':method'] === 'HEAD') stream.respond({ ':status': 200, 'content-length': '1234', etag: '"x"' }, { endStream: true })
    else stream.respond({ ':status': 204 }, { endStream: true })
  })
  const head = await plane.gateway.send('HEAD', '/v1/files?path=/a')
  assert.deepEqual([head.status, head.headers['content-length'], head.body.byteLength], [200, '1234', 0])
  assert.equal((await plane.gateway.send('DELETE', '/v1/files?path=/a')).status, 204)
  await until('both to be over', () => (plane.server.counters.streams === 0 ? true : undefined))
})

test('strangers that hold sessions open do not keep a gateway out', async () => {
  await using plane = await Plane.open((stream) => stream.end('ok'))
  const strangers = Array.from({ length: LIMITS.dataPlaneSessions + 8 }, () => new GatewayClient(plane.server.url, SANDBOX, 1, {}))
  await until('them to be in', () => (plane.server.counters.sessions >= LIMITS.dataPlaneSessions ? true : undefined))
  const late = new GatewayClient(plane.server.url, SANDBOX, 1)
  assert.equal((await late.send('GET', '/v1/health')).body.toString('utf8'), 'ok')
  for (const client of [late, ...strangers]) client.close()
})

test('a gateway that does not read stops the guest from writing', async () => {
  let written = 0
  await using plane = await Plane.open((stream) => {
    stream.respond({ ':status': 200 })
    const push = (): void => {
      for (let more = true; more && !stream.destroyed; written += 64 * 1024) more = stream.write(Buffer.alloc(64 * 1024))
    }
    stream.on('drain', push)
    push()
  })
  const stream = plane.gateway.open('GET', '/v1/files?path=/endless', {}, true)
  await once(stream, 'response')
  stream.pause()
  const settled = await stableValue(() => written)
  assert.ok(settled < 8 * MIB, `${settled} bytes were taken from the guest`)
  stream.resume()
  await until('it to go on', () => (written > settled + 4 * MIB ? true : undefined))
  stream.close(8)
})

test('a guest that does not read stops the gateway from writing', async () => {
  let release = (): void => {}
  await using plane = await Plane.open((stream) => {
    stream.pause()
    release = () => stream.resume()
  })
  const stream = plane.gateway.open('PUT', '/v1/files?path=/slow')
  let written = 0
  const push = (): void => {
    for (let more = true; more && !stream.destroyed; written += 64 * 1024) more = stream.write(Buffer.alloc(64 * 1024))
  }
  stream.on('drain', push)
  stream.on('error', () => {})
  push()
  const settled = await stableValue(() => written)
  assert.ok(settled < 8 * MIB, `${settled} bytes were taken from the gateway`)
  release()
  await until('it to go on', () => (written > settled + 4 * MIB ? true : undefined))
  stream.destroy()
})

test('an upload that the gateway breaks off never ends cleanly at the guest', async () => {
  const ends: string[] = []
  await using plane = await Plane.open((stream) => {
    stream.on('end', () => ends.push(`end ${stream.rstCode}`))
    stream.on('aborted', () => ends.push('aborted'))
    stream.on('close', () => ends.push(`close ${stream.rstCode === 0 ? 'clean' : 'reset'}`))
    stream.resume()
  })
  const stream = plane.gateway.open('PUT', '/v1/files?path=/a')
  stream.on('error', () => {})
  stream.write(Buffer.alloc(100_000))
  await until('the upload to arrive', () => (plane.server.counters.streams === 1 ? true : undefined))
  stream.destroy(new Error('client went away'))
  await until('the guest to hear of it', () => (ends.some((entry) => entry.startsWith('close')) ? true : undefined))
  assert.ok(ends.includes('close reset'), ends.join(', '))
  assert.ok(!ends.includes('end 0'), ends.join(', '))
})

test('a follower that the gateway cancels is cancelled at the guest', async () => {
  let closed = -1
  await using plane = await Plane.open((stream) => {
    stream.respond({ ':status': 200 })
    stream.write('first')
    stream.on('close', () => {
      closed = stream.rstCode
    })
  })
  const stream = plane.gateway.open('GET', '/v1/processes/prx/output?follow=1', {}, true)
  await once(stream, 'data')
  stream.close(8)
  await until('the guest to hear of it', () => (closed === -1 ? undefined : true))
  assert.notEqual(closed, 0)
})

const breaks: [name: string, act: (stream: ServerHttp2Stream, guest: () => ScriptedGuest | undefined) => void][] = [
  ['resets the stream', (stream) => stream.destroy(new Error('broken'))],
  ['loses its session', (_, guest) => guest()?.vanish()],
]
for (const [name, act] of breaks) {
  test(`a guest that ${name} in the middle of a body resets the gateway’s stream`, async () => {
    let guest: ScriptedGuest | undefined
    await using plane = await Plane.open((stream) => {
      stream.respond({ ':status': 200 })
      stream.write('half', () => act(stream, () => guest))
    })
    guest = plane.guest
    const stream = plane.gateway.open('GET', '/v1/files?path=/a', {}, true)
    const seen: string[] = []
    stream.on('data', (chunk: Buffer) => seen.push(chunk.toString('utf8')))
    stream.on('end', () => seen.push('end'))
    stream.on('error', () => {})
    stream.on('close', () => seen.push(stream.rstCode === 0 ? 'closed cleanly' : 'reset'))
    // Bounded, so that a cut that nobody is told of is red as well.
    await until('the stream to be over', () => (seen.length > 1 && seen.at(-1) !== 'end' ? true : undefined)).finally(() => stream.destroy())
    assert.deepEqual(seen, ['half', 'reset'])
  })

  test(`a guest that ${name} before it answers is lost contact`, { timeout: 60_000 }, async () => {
    let guest: ScriptedGuest | undefined
    await using plane = await Plane.open((stream) => act(stream, () => guest))
    guest = plane.guest
    const answer = await plane.gateway.send('GET', '/v1/files?path=/a')
    assert.deepEqual([answer.status, code(answer.body), answer.headers['sandglass-from']], [502, 'lost_contact', 'host'])
  })
}

/** RST_STREAM with NO_ERROR (RFC 9113, 6.4), which Node.js never sends before an answer. */
const resetWithoutError = (streamId: number): Buffer => Buffer.from([0, 0, 4, 3, 0, 0, 0, 0, streamId, 0, 0, 0, 0])

test('a guest that resets a stream without an error before it answers is lost contact', { timeout: 60_000 }, async () => {
  let guest: ScriptedGuest | undefined
  await using plane = await Plane.open(({ id = 0 }) => void guest?.socket.write(resetWithoutError(id)))
  guest = plane.guest
  const answer = await plane.gateway.send('GET', '/v1/files?path=/a')
  assert.deepEqual([answer.status, code(answer.body), answer.headers['sandglass-from']], [502, 'lost_contact', 'host'])
})

for (const [bytes, seen] of [
  [0, 'response'],
  [5, 'data'],
] as const) {
  test(`a guest that breaks off behind all of the ${bytes} bytes that it announced has answered`, { timeout: 60_000 }, async () => {
    await using plane = await Plane.open((stream) => {
      stream.respond({ ':status': 404, 'content-length': String(bytes) })
      stream.write('x'.repeat(bytes))
    })
    const stream = plane.gateway.open('GET', '/v1/health', {}, true)
    stream.once(seen, () => plane.guest.vanish())
    let answer = ''
    for await (const chunk of stream) answer += chunk
    assert.deepEqual([answer.length, stream.rstCode], [bytes, 0])
  })
}

test('an answer that comes before the upload was read is passed on', async () => {
  await using plane = await Plane.open((stream) => {
    stream.respond({ ':status': 409, 'content-type': 'application/json' })
    stream.end('{"code":"is_a_directory","detail":"no"}')
  })
  const answer = await plane.gateway.send('PUT', '/v1/files?path=/a', randomBytes(4 * MIB)).catch((error: Error) => error)
  if (!(answer instanceof Error)) assert.equal(answer.status, 409)
})

test('a body that stays open and its answer go on beside each other, and end each by itself', async () => {
  await using plane = await Plane.open((stream) => {
    stream.respond({ ':status': 200 })
    stream.on('data', (chunk: Buffer) => stream.write(`${chunk} taken\n`))
    stream.on('end', () => stream.end('all taken\n'))
  })
  const stream = plane.gateway.open('POST', '/v1/processes/prx/stdin?stream=1')
  let seen = ''
  stream.on('data', (chunk: Buffer) => {
    seen += chunk
  })
  await once(stream, 'response')
  for (const key of ['a', 'b', 'c']) {
    stream.write(key)
    await until(`${key} to be answered`, () => (seen.endsWith(`${key} taken\n`) ? true : undefined))
  }
  stream.end()
  await once(stream, 'close')
  assert.deepEqual([seen, stream.rstCode], ['a taken\nb taken\nc taken\nall taken\n', 0])
})

test('a status that no guest may answer with is not one', () => {
  for (const status of [undefined, 0, 100, 101, 199, 600, 999]) assert.equal(statusFromGuest(status), undefined)
  for (const status of [200, 206, 404, 599]) assert.equal(statusFromGuest(status), status)
})

test('open requests of one sandbox are bounded, and a place that is given back is free again', async () => {
  const streams: ServerHttp2Stream[] = []
  await using plane = await Plane.open((stream) => {
    stream.respond({ ':status': 200 })
    stream.write('x')
    streams.push(stream)
  })
  const open = Array.from({ length: LIMITS.dataPlaneStreamsPerSandbox }, () => plane.gateway.open('GET', '/v1/files/watch?path=/', {}, true))
  await until('all to be open', () => (streams.length === LIMITS.dataPlaneStreamsPerSandbox ? true : undefined))
  const refused = await plane.gateway.send('GET', '/v1/health')
  assert.deepEqual([refused.status, code(refused.body)], [503, 'overloaded'])
  for (const stream of open) stream.close(8)
  await until('the places', () => (plane.server.counters.streams === 0 ? true : undefined))
  const again = plane.gateway.open('GET', '/v1/files/watch?path=/', {}, true)
  const [head] = await once(again, 'response')
  assert.equal(head[':status'], 200)
})

test('a guest that is not connected is waited for, then lost contact', async () => {
  await using plane = await Plane.open((stream) => stream.end('late'))
  plane.guest.vanish()
  await until('the loss', () => (plane.under.lost === 1 ? true : undefined))
  const lost = await plane.gateway.send('GET', '/v1/health')
  assert.deepEqual([lost.status, code(lost.body)], [502, 'lost_contact'])
  const waiting = plane.gateway.send('GET', '/v1/health')
  await ScriptedGuest.dial(plane.under.path, (stream) => stream.end('here again'))
  assert.equal((await waiting).body.toString('utf8'), 'here again')
})

/** The value, once it has not changed for a while. */
async function stableValue(look: () => number): Promise<number> {
  let last = -1
  let since = performance.now()
  return until('a value that stays', () => {
    const value = look()
    if (value !== last) {
      last = value
      since = performance.now()
    }
    return performance.now() - since > 300 ? value : undefined
  })
}
