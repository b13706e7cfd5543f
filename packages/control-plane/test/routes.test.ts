/** A walk over every public route of this role: each refusal, in its order, for each route of the contract's table. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { LIMITS, PUBLIC_ROUTES, type PublicRoute, parserOf, type Role } from '@sandglass/contract'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
const ROLES: readonly Role[] = ['viewer', 'member', 'owner', 'operator']
const routes: [name: string, route: PublicRoute][] = Object.entries<PublicRoute>(PUBLIC_ROUTES).filter(([, route]) => route.server === 'control-plane')

type Subjects = { readonly sandbox: string; readonly operation: string; readonly apiKey: string; readonly joinToken: string; readonly host: string }

/** A body that the route takes. */
const BODIES: Readonly<Record<string, object>> = {
  createSandbox: { isolation: 'fake' },
  updateSandbox: { metadata: { a: 'b' } },
  extendSandbox: { ttl_seconds: 60 },
  createApiKey: { name: 'walk', role: 'viewer' },
  updateHost: { labels: { zone: 'a' } },
}

/** The path with an id of the right kind. */
function pathOf(route: PublicRoute, subjects: Subjects): string {
  const id = route.path.includes('/sandboxes/')
    ? subjects.sandbox
    : route.path.includes('/operations/')
      ? subjects.operation
      : route.path.includes('/api-keys/')
        ? subjects.apiKey
        : route.path.includes('/join-tokens/')
          ? subjects.joinToken
          : subjects.host
  return route.path.replace('{id}', id).replace('{name}', 'base')
}

async function subjectsOf(rig: Rig, key: string): Promise<Subjects> {
  const created = await rig.create({}, { wait: 0, key })
  const made = await rig.call<{ id: string }>('POST', '/v1/api-keys', {
    key: key === rig.keys.member ? rig.keys.owner : key,
    body: { name: 'walk', role: 'viewer' },
  })
  const token = await rig.call<{ id: string }>('POST', '/v1/join-tokens', { key: rig.keys.operator, body: {} })
  const location = created.headers.get('location') ?? ''
  return { sandbox: created.body.id, operation: location.split('/').at(-1) ?? '', apiKey: made.body.id, joinToken: token.body.id, host: rig.hosts[1]?.id ?? '' }
}

describe('every route', () => {
  let rig: Rig
  let mine: Subjects
  let theirs: Subjects
  before(async () => {
    rig = await startRig(postgres.current)
    await rig.host({ starts: ['hang'], capacity: { vcpu: 100, memory_mb: 100_000, disk_gb: 1_000 } })
    // Has room for nothing: it is cordoned, drained and removed on the way.
    await rig.host({ name: 'spare', capacity: { vcpu: 0, memory_mb: 0, disk_gb: 0 } })
    mine = await subjectsOf(rig, rig.keys.member)
    theirs = await subjectsOf(rig, await rig.newKey('acme', 'owner'))
  })
  after(async () => {
    await rig[Symbol.asyncDispose]()
  })

  for (const [name, route] of routes) {
    const call = (key: string, subjects: Subjects, extra: { body?: unknown; query?: string } = {}) =>
      rig.call(route.method, `${pathOf(route, subjects)}${extra.query ?? ''}`, { key, body: 'body' in extra ? extra.body : BODIES[name] })

    test(`${name}: 401 without a key, with a malformed one, with one that nobody has`, async () => {
      for (const key of ['', 'nonsense', `sgk_${'A'.repeat(43)}`]) {
        const answer = await call(key, mine)
        assert.equal(answer.status, 401, key)
        assert.equal(answer.problem?.code, 'unauthenticated')
        assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
      }
    })

    test(`${name}: 403 for each role below ${route.role}`, async () => {
      for (const role of ROLES.slice(0, route.role === 'anyone' ? 0 : ROLES.indexOf(route.role))) {
        const answer = await call(rig.keys[role], mine)
        assert.equal(answer.status, 403, role)
        assert.equal(answer.problem?.code, 'forbidden')
      }
    })

    test(`${name}: unknown fields are refused and named`, async () => {
      const key = rig.keys.operator
      if (typeof route.body === 'object') {
        const answer = await call(key, mine, { body: { ...BODIES[name], surprise: 1 } })
        assert.equal(answer.status, 400)
        assert.deepEqual(answer.problem?.errors, [{ path: '/surprise', message: 'is not a known field' }])
      } else if (route.method !== 'GET') {
        assert.equal((await call(key, mine, { body: { surprise: 1 } })).problem?.code, 'invalid_request')
      }
      const answer = await call(key, mine, { query: '?surprise=1' })
      assert.equal(answer.status, 400, JSON.stringify(answer.body))
      assert.equal(answer.problem?.errors?.[0]?.path, '/surprise')
    })

    if (route.path.includes('{id}') && route.role !== 'operator') {
      test(`${name}: someone else’s id and no id at all are the same 404`, async () => {
        const nobodys = {
          sandbox: 'sbl1aaaaaaaaaaaaaaaa',
          operation: 'opaaaaaaaaaaaaaaaa',
          apiKey: 'akaaaaaaaaaaaaaaaa',
          joinToken: 'jtaaaaaaaaaaaaaaaa',
          host: 'hoaaaaaaaaaaaaaaaa',
        }
        // The id that was asked for may be said again; nothing else may differ.
        const plain = ({ status, problem }: Awaited<ReturnType<typeof call>>, { sandbox }: typeof nobodys) => {
          return { status, code: problem?.code, detail: problem?.detail.replaceAll(sandbox, 'ID') }
        }
        const other = plain(await call(rig.keys.owner, theirs), theirs)
        assert.equal(other.status, 404)
        assert.deepEqual(other, plain(await call(rig.keys.owner, nobodys), nobodys))
        assert.equal((await call(rig.keys.owner, { ...nobodys, sandbox: 'x%00y', operation: '..', apiKey: '%2e', joinToken: '~', host: '~' })).status, 404)
      })
    }

    test(`${name}: every problem names itself, its request and a registered code`, async () => {
      const answer = await call('', mine)
      assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/)
      assert.equal(answer.problem?.request_id, answer.headers.get('sandglass-request-id'))
      assert.match(answer.problem?.request_id ?? '', /^rq[a-z2-7]{16}$/)
      assert.equal(answer.problem?.instance, pathOf(route, mine))
      assert.equal(answer.problem?.type, '/docs/errors#unauthenticated')
    })
  }

  // Last, because some of these change what the others look at.
  for (const [name, route] of routes.toSorted(([, a], [, b]) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'))) {
    test(`${name}: its answer is what the contract says`, async () => {
      if (route.responses[200] === 'events') {
        // A stream has no end to wait for; HEAD answers with its headers.
        const head = await rig.call('HEAD', pathOf(route, mine), { key: rig.keys.operator })
        assert.deepEqual([head.status, head.headers.get('content-type')], [200, 'text/event-stream'])
        return
      }
      const answer = await rig.call(route.method, pathOf(route, mine), { key: rig.keys.operator, body: BODIES[name] })
      const schema = route.responses[answer.status]
      assert.notEqual(schema, undefined, `${answer.status} ${JSON.stringify(answer.body)}`)
      if (typeof schema === 'object' && schema !== null) parserOf(schema).parse(answer.body)
    })
  }
})

describe('requests that are not what they should be', () => {
  let rig: Rig
  before(async () => {
    rig = await startRig(postgres.current)
  })
  after(async () => {
    await rig[Symbol.asyncDispose]()
  })
  const post = (body: unknown, headers: Record<string, string> = {}) => rig.call('POST', '/v1/sandboxes', { body, headers })
  const cases: [name: string, body: unknown, status: number, code: string][] = [
    ['not JSON', '{', 400, 'invalid_request'],
    ['an empty text for an object', '""', 400, 'invalid_request'],
    ['null', 'null', 400, 'invalid_request'],
    ['a list', '[]', 400, 'invalid_request'],
    ['a wrong type', { ttl_seconds: '60' }, 400, 'invalid_request'],
    ['a number out of range', { ttl_seconds: 1 }, 400, 'invalid_request'],
    ['a fraction of a fraction', { resources: { vcpu: 0.123 } }, 400, 'invalid_request'],
    ['an unknown nested field', { resources: { cores: 1 } }, 400, 'invalid_request'],
    ['a prototype', '{"__proto__": {"a": 1}}', 400, 'invalid_request'],
    ['text with NUL', { metadata: { a: 'x\u0000' } }, 400, 'invalid_request'],
    ['half a surrogate pair', '{"metadata": {"a": "\\ud800"}}', 400, 'invalid_request'],
    ['too deep', `${'['.repeat(17)}${']'.repeat(17)}`, 422, 'limit_exceeded'],
    ['too large', JSON.stringify({ env: { A: 'x'.repeat(LIMITS.apiBodyBytes) } }), 413, 'body_too_large'],
    ['too much env', { env: Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`A${index}`, 'x'.repeat(16_000)])) }, 422, 'limit_exceeded'],
  ]
  for (const [name, body, status, code] of cases) {
    test(`a body that is ${name}`, async () => {
      const answer = await post(body)
      assert.deepEqual({ status: answer.status, code: answer.problem?.code }, { status, code })
    })
  }

  test('nothing was made of any of them', async () => {
    assert.deepEqual(await rig.rows('SELECT id FROM sandglass.sandboxes'), [])
  })

  test('another media type', async () => {
    assert.equal((await post('a=b', { 'content-type': 'application/x-www-form-urlencoded' })).problem?.code, 'unsupported_media_type')
  })

  test('a path that does not exist, a method that it does not have, a path of the gateway', async () => {
    assert.equal((await rig.call('GET', '/v1/nothing')).problem?.code, 'route_not_found')
    const wrongMethod = await rig.call('PUT', '/v1/sandboxes', { body: {} })
    assert.equal(wrongMethod.status, 405)
    assert.equal(wrongMethod.headers.get('allow'), 'POST, GET')
    const gateway = await rig.call('POST', '/v1/sandboxes/x/exec', { body: {} })
    assert.equal(gateway.status, 404)
    assert.match(gateway.problem?.detail ?? '', /gateway_url/)
  })

  test('ids that are no ids, however they are written', async () => {
    for (const [id, status, code] of [
      ['%zz', 400, 'invalid_request'],
      ['%ff%fe', 400, 'invalid_request'],
      ['x'.repeat(5_000), 404, 'sandbox_not_found'],
      ['%00', 404, 'sandbox_not_found'],
      ['%20', 404, 'sandbox_not_found'],
      ['a%2fb', 404, 'sandbox_not_found'],
    ] as const) {
      const answer = await rig.call('GET', `/v1/sandboxes/${id}`)
      assert.deepEqual({ id, status: answer.status, code: answer.problem?.code }, { id, status, code })
      assert.match(answer.headers.get('sandglass-request-id') ?? '', /^rq/)
    }
  })

  test('what is not HTTP is refused as a problem too', async () => {
    const socket = connect(Number(new URL(rig.url).port), '127.0.0.1')
    socket.end('nonsense\r\n\r\n')
    assert.match(await text(socket), /^HTTP\/1\.1 400 Invalid request\r\ncontent-type: application\/problem\+json/)
  })

  test('headers that are too long are refused by the name of the limit', async () => {
    const answer = await rig.call('GET', '/v1/sandboxes', { headers: { 'x-long': 'x'.repeat(60_000) } })
    assert.deepEqual(
      { status: answer.status, code: answer.problem?.code, limit: answer.problem?.limit },
      { status: 422, code: 'limit_exceeded', limit: { name: 'requestHeadBytes', value: LIMITS.requestHeadBytes } },
    )
    const fits = await rig.call('GET', '/v1/sandboxes', { headers: { 'x-long': 'x'.repeat(LIMITS.requestHeadBytes - 1_000) } })
    assert.equal(fits.status, 200)
  })

  test('what machines ask for is not served here, whoever asks', async () => {
    for (const path of ['/internal/v1/access', '/internal/v1/hosts/register', '/internal/v1/join', '/internal/v1/certificates', '/internal/v1/refusals']) {
      for (const key of [rig.keys.operator, '']) assert.equal((await rig.call('POST', path, { key, body: {} })).problem?.code, 'route_not_found', path)
    }
    assert.equal((await rig.call('GET', '/internal/v1/reconcilers')).status, 403)
    assert.equal((await rig.call('GET', '/internal/v1/reconcilers', { key: rig.keys.operator })).status, 200)
  })

  test('what anyone may read', async () => {
    assert.equal((await rig.call('GET', '/healthz', { key: '' })).status, 200)
    assert.equal((await rig.call<{ openapi: string }>('GET', '/openapi.json', { key: '' })).body.openapi.slice(0, 3), '3.1')
    assert.match((await rig.call<string>('GET', '/docs/errors', { key: '' })).body, /id="quota_exceeded"/)
    const metrics = (await rig.call<string>('GET', '/metrics', { key: '' })).body
    for (const name of ['http_server_request_duration_seconds_bucket{', 'sandglass_reconciler_runs_total{', 'sandglass_database_connections{']) {
      assert.ok(metrics.includes(name), name)
    }
  })
})
