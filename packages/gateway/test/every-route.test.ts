/** What holds for each gateway route of the public table. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { LIMITS, ProblemSchema, PUBLIC_ROUTES, type PublicRoute, parserOf } from '@sandglass/contract'
import { Bench, SANDBOX } from './peers/bench.ts'
import type { ScriptedKey } from './peers/control-plane.ts'
import { answerJson } from './peers/host.ts'

const problem = parserOf(ProblemSchema)
const ROUTES: [name: string, route: PublicRoute][] = Object.entries(PUBLIC_ROUTES).filter(([, { server }]) => server === 'gateway')
let bench: Bench
let viewer: ScriptedKey
before(async () => {
  bench = await Bench.scripted(({ stream }) => answerJson(stream, 500, { code: 'internal', detail: 'not asked for' }))
  viewer = bench.control.addKey('viewer')
})
after(() => bench[Symbol.asyncDispose]())
beforeEach(() => {
  bench.host.requests.length = 0
})

type Sent = { readonly authorization?: string; readonly sandbox?: string; readonly query?: string }

function send({ method, path }: PublicRoute, { authorization, sandbox = SANDBOX, query = '' }: Sent): Promise<Response> {
  const url = `${bench.url}${path.replace('{id}', sandbox).replace('{process_id}', 'key:some')}${query}`
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
  return fetch(url, { method, headers, ...(method === 'POST' || method === 'PUT' ? { body: '{}' } : {}) })
}

async function told(response: Response, method: string): Promise<{ status: number; code: string | undefined }> {
  assert.match(response.headers.get('sandglass-request-id') ?? '', /^rq[a-z2-7]{16}$/)
  assert.equal(response.headers.get('content-type'), 'application/problem+json')
  if (method === 'HEAD') return { status: response.status, code: undefined }
  const { status, code } = problem.parse(await response.json())
  assert.equal(status, response.status)
  return { status, code }
}

test('the table has the routes of the data plane', () => assert.ok(ROUTES.length >= 20))

const STRANGERS: [name: string, authorization: string | undefined][] = [
  ['no key', undefined],
  ['an empty key', 'Bearer '],
  ['a key of another form', 'Bearer sgk_short'],
  ['another scheme', 'Basic c2drOng='],
  ['a key that nobody has', `Bearer sgk_${'A'.repeat(43)}`],
]

for (const [name, route] of ROUTES) {
  for (const [stranger, authorization] of STRANGERS) {
    test(`${name} with ${stranger} is unauthenticated and costs the host nothing`, async () => {
      const { status, code } = await told(await send(route, authorization === undefined ? {} : { authorization }), route.method)
      assert.equal(status, 401)
      assert.ok(code === undefined || code === 'unauthenticated')
      assert.equal(bench.host.requests.length, 0)
    })
  }

  test(`${name} with a viewer’s key is ${route.role === 'viewer' ? 'allowed' : 'forbidden'}`, async () => {
    const response = await send(route, { authorization: `Bearer ${viewer.text}` })
    assert.equal(response.status === 403, route.role !== 'viewer')
    await response.body?.cancel()
  })

  test(`${name} of a sandbox that is not there, or has another form, is 404`, async () => {
    const authorization = `Bearer ${bench.key.text}`
    assert.equal((await told(await send(route, { authorization, sandbox: 'sbl1zzzzzzzzzzzzzzzz' }), route.method)).status, 404)
    const wrong = await told(await send(route, { authorization, sandbox: 'my-sandbox' }), route.method)
    assert.equal(wrong.status, 404)
    assert.ok(wrong.code === undefined || wrong.code === 'invalid_id')
    assert.equal(bench.host.requests.length, 0)
  })

  test(`${name} with an unknown query field is refused`, async () => {
    const { status } = await told(await send(route, { authorization: `Bearer ${bench.key.text}`, query: '?surprise=1' }), route.method)
    assert.equal(status, 400)
    assert.equal(bench.host.requests.length, 0)
  })
}

test('a path, a method and an id that are not in the table are problems', async () => {
  const authorization = `Bearer ${bench.key.text}`
  for (const [method, path, statuses] of [
    ['GET', '/v1/sandboxes', [404]],
    ['PATCH', `/v1/sandboxes/${SANDBOX}/files`, [405]],
    ['DELETE', `/v1/sandboxes/${SANDBOX}/exec`, [405]],
    ['GET', '/%ff', [400]],
    ['GET', `/v1/sandboxes/${'x'.repeat(500)}/processes`, [400, 404]],
  ] as const) {
    const response = await fetch(`${bench.url}${path}`, { method, headers: { authorization } })
    assert.ok(
      statuses.some((status) => status === response.status),
      `${path} ${response.status}`,
    )
    assert.equal(response.headers.get('content-type'), 'application/problem+json')
    assert.equal(response.headers.has('allow'), response.status === 405)
  }
  const response = await bench.ask('/processes/12345')
  assert.equal(problem.parse(await response.json()).code, 'process_not_found')
})

test('the type of a problem leads to its code on this server’s own page, which needs no key', async () => {
  const refused = await bench.ask('/processes/12345')
  const link = new URL(problem.parse(await refused.json()).type, refused.url)
  assert.equal(link.origin, bench.url)
  const response = await fetch(link)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
  const page = await response.text()
  assert.ok(page.includes(`<tr id="${link.hash.slice(1)}">`), link.hash)
  // Links lead to anchors of the page only: the reference is on another server.
  for (const [, target] of page.matchAll(/\shref="([^"]*)"/g)) assert.match(target ?? '', /^#/)
})

test('a request head that is too large is refused', async () => {
  const response = await bench.ask(`/files?path=/${'a'.repeat(5 * LIMITS.pathBytes * 3)}`)
  const { code, limit } = problem.parse(await response.json())
  assert.deepEqual([response.status, code, limit], [422, 'limit_exceeded', { name: 'requestHeadBytes', value: LIMITS.requestHeadBytes }])
})

test('statuses other than ready say what is wrong', async () => {
  const saved = bench.control.sandboxes.get(SANDBOX)
  const cases = [
    ['pending', 'sandbox_not_ready', 409],
    ['starting', 'sandbox_not_ready', 409],
    ['stopping', 'sandbox_stopped', 409],
    ['stopped', 'sandbox_stopped', 409],
    ['failed', 'sandbox_failed', 409],
    ['terminated', 'sandbox_ended', 410],
    ['ready', 'unavailable', 503],
  ] as const
  for (const [status, code, http] of cases) {
    bench.control.emit({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: bench.generation })
    bench.control.sandboxes.set(SANDBOX, { status, route: null })
    const deadline = Date.now() + 60_000
    for (;;) {
      const response = await bench.ask('/processes')
      const answered = problem.parse(await response.json())
      if (answered.code === code) {
        assert.equal(response.status, http)
        break
      }
      assert.ok(Date.now() < deadline, `${status}: ${answered.code}`)
    }
  }
  if (saved !== undefined) bench.control.sandboxes.set(SANDBOX, saved)
})

test('health, readiness and metrics need no key and say nothing secret', async () => {
  assert.equal((await fetch(`${bench.url}/healthz`)).status, 200)
  assert.equal((await fetch(`${bench.url}/readyz`)).status, 200)
  const metrics = await (await fetch(`${bench.url}/metrics`)).text()
  assert.match(metrics, /^http_server_request_duration_seconds_count\{.*\} [0-9]+$/m)
  assert.match(metrics, /^sandglass_gateway_feed_connected 1$/m)
  assert.match(metrics, /^sandglass_gateway_connections [1-9]\d*$/m)
  for (const direction of ['received', 'sent'])
    assert.match(metrics, new RegExp(`^sandglass_gateway_client_bytes_total\\{direction="${direction}"\\} [1-9]\\d*$`, 'm'))
  assert.ok(!metrics.includes('sgk_'))
})
