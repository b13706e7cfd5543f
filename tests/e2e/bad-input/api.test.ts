/** Bad input at the API: each gets its named error, and costs nothing. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type ErrorCode, LIMITS } from '@sandglass/contract'
import { afterTests, sharedInstallation } from '../file-installation.ts'
import type { Installation } from '../installation.ts'
import { type RawAnswer, type RawRequest, rawHttp } from '../subject/raw-http.ts'
import { assertCostNothing, type Costs, costsOf } from './costs.ts'
import { assertProblem } from './problem.ts'

let installation: Installation
let costs: Costs
before(async () => {
  installation = await sharedInstallation()
  costs = await costsOf(installation)
})
afterTests(() => assertCostNothing(installation, costs))

const JSON_TYPE = { 'content-type': 'application/json' }

function call(request: RawRequest): Promise<RawAnswer> {
  return rawHttp(installation.apiUrl, { ...request, headers: { authorization: `Bearer ${installation.operatorKey}`, ...request.headers } })
}

const create = (body: string | Uint8Array, headers: Readonly<Record<string, string>> = JSON_TYPE): RawRequest => ({
  method: 'POST',
  path: '/v1/sandboxes',
  headers,
  body,
})
const createWith = (fields: object): RawRequest => create(JSON.stringify(fields))
const read = (path: string): RawRequest => ({ method: 'GET', path })

const nested = (depth: number): string => `${'{"metadata":'.repeat(depth)}{}${'}'.repeat(depth)}`
const many = (count: number, key: (index: number) => string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [key(index), 'x']))
const SOMEBODY = 'sbl1aaaaaaaaaaaaaaaa'

const INVALID: Readonly<Record<string, { readonly fields: object; readonly path: string }>> = {
  'an unknown field': { fields: { nope: 1 }, path: '/nope' },
  'an unknown field further in': { fields: { resources: { gpu: 1 } }, path: '/resources/gpu' },
  'a number as text': { fields: { ttl_seconds: '60' }, path: '/ttl_seconds' },
  'a fraction for whole numbers': { fields: { resources: { memory_mb: 256.5 } }, path: '/resources/memory_mb' },
  'null for an object': { fields: { resources: null }, path: '/resources' },
  'a list for an object': { fields: { metadata: [] }, path: '/metadata' },
  'too little memory': { fields: { resources: { memory_mb: 1 } }, path: '/resources/memory_mb' },
  'a negative number of CPUs': { fields: { resources: { vcpu: -1 } }, path: '/resources/vcpu' },
  'too short a life': { fields: { ttl_seconds: LIMITS.ttlSecondsMin - 1 }, path: '/ttl_seconds' },
  'too long a life': { fields: { ttl_seconds: LIMITS.ttlSecondsMax + 1 }, path: '/ttl_seconds' },
  'a number beyond all bounds': { fields: { ttl_seconds: 1e308 }, path: '/ttl_seconds' },
  'a name with capitals and spaces': { fields: { name: 'My Name' }, path: '/name' },
  'a name that is too long': { fields: { name: `a${'b'.repeat(LIMITS.nameCharacters)}` }, path: '/name' },
  'a name shaped like an id': { fields: { name: SOMEBODY }, path: '/name' },
  'a variable with = in its name': { fields: { env: { 'A=B': 'x' } }, path: '/env' },
  'a variable with NUL in its value': { fields: { env: { A: 'a\0b' } }, path: '/env' },
  'too many variables': { fields: { env: many(LIMITS.envEntries + 1, (index) => `V${index}`) }, path: '/env' },
  'too much metadata': { fields: { metadata: many(LIMITS.metadataEntries + 1, (index) => `k${index}`) }, path: '/metadata' },
  'a network mode that is none': { fields: { network: { mode: 'everything' } }, path: '/network' },
  'a template name with a path': { fields: { template: '../../etc' }, path: '/template' },
}

describe('fields of a create', () => {
  for (const [what, { fields, path }] of Object.entries(INVALID)) {
    test(what, async () => {
      const problem = assertProblem(what, await call(createWith(fields)), 'invalid_request')
      assert.ok(
        problem.errors?.some((error) => error.path === path || error.path.startsWith(`${path}/`) || path.startsWith(`${error.path}/`)),
        `the error names ${path}: ${JSON.stringify(problem.errors)}`,
      )
    })
  }
})

type Refusal = { readonly request: () => RawRequest; readonly codes: ErrorCode | readonly ErrorCode[] }

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a body that is no JSON': { request: () => create('{"name":'), codes: 'invalid_request' },
  'a body that is a list': { request: () => create('[]'), codes: 'invalid_request' },
  'a body that is null': { request: () => create('null'), codes: 'invalid_request' },
  'a body that is text': { request: () => create('"text"'), codes: 'invalid_request' },
  'a body with a prototype in it': { request: () => create('{"__proto__":{"ttl_seconds":60}}'), codes: 'invalid_request' },
  'a body with a constructor in it': { request: () => create('{"constructor":{"prototype":{"ttl_seconds":60}}}'), codes: 'invalid_request' },
  'a body that is no UTF-8': { request: () => create(Uint8Array.of(0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d)), codes: 'invalid_request' },
  'JSON a little too deep': { request: () => create(nested(LIMITS.apiJsonDepth + 1)), codes: ['invalid_request', 'limit_exceeded'] },
  'JSON far too deep': { request: () => create(nested(50_000)), codes: ['invalid_request', 'limit_exceeded'] },
  'lists far too deep': { request: () => create('['.repeat(400_000)), codes: ['invalid_request', 'limit_exceeded'] },
  'a body that is too large': { request: () => create(`{"name":"${'a'.repeat(LIMITS.apiBodyBytes)}"}`), codes: 'body_too_large' },
  'a body that says it is huge': { request: () => create('{}', { ...JSON_TYPE, 'content-length': '99999999999' }), codes: 'body_too_large' },
  'another content type': { request: () => create('name=x', { 'content-type': 'application/x-www-form-urlencoded' }), codes: 'unsupported_media_type' },
  'plain text': { request: () => create('{}', { 'content-type': 'text/plain' }), codes: 'unsupported_media_type' },
  'a network mode that is not there yet': { request: () => createWith({ network: { mode: 'open' } }), codes: 'network_mode_unavailable' },
  'an isolation that is not there': { request: () => createWith({ isolation: 'microvm' }), codes: 'isolation_unavailable' },
  'a template that is not there': { request: () => createWith({ template: 'no-such' }), codes: 'template_not_found' },
  'a digest that is not there': { request: () => createWith({ template: `base@sha256:${'0'.repeat(64)}` }), codes: 'template_not_found' },
  'more than any host has': { request: () => createWith({ resources: { memory_mb: LIMITS.memoryMbMax } }), codes: 'unschedulable_never' },
  'an idempotency key that is too long': {
    request: () => create('{}', { ...JSON_TYPE, 'idempotency-key': 'k'.repeat(LIMITS.idempotencyKeyCharacters + 1) }),
    codes: ['invalid_request', 'limit_exceeded'],
  },
  'a page without items': { request: () => read('/v1/sandboxes?limit=0'), codes: 'invalid_request' },
  'a page that is too large': { request: () => read(`/v1/sandboxes?limit=${LIMITS.pageItems + 1}`), codes: 'invalid_request' },
  'a page size that is no number': { request: () => read('/v1/sandboxes?limit=ten'), codes: 'invalid_request' },
  'a cursor that is none': { request: () => read('/v1/sandboxes?cursor=%00%01nonsense'), codes: 'invalid_request' },
  'a cursor with SQL in it': { request: () => read("/v1/sandboxes?cursor='%3Bdrop%20table%20sandboxes--"), codes: 'invalid_request' },
  'a filter that is none': { request: () => read('/v1/sandboxes?status=sleeping'), codes: 'invalid_request' },
  'a query field that is unknown': { request: () => read('/v1/sandboxes?colour=red'), codes: 'invalid_request' },
  'a query field given twice': { request: () => read('/v1/sandboxes?limit=1&limit=2'), codes: 'invalid_request' },
  'a place in the feed that is none': { request: () => read('/v1/events?since=yesterday'), codes: 'invalid_request' },
  'a place in the feed before its beginning': { request: () => read('/v1/events?since=-1'), codes: 'invalid_request' },
  'a field of the feed that is unknown': { request: () => read('/v1/events?until=1'), codes: 'invalid_request' },
  'an id that nobody has': { request: () => read(`/v1/sandboxes/${SOMEBODY}`), codes: 'sandbox_not_found' },
  'a name that nobody has': { request: () => read('/v1/sandboxes/no-such-name'), codes: 'sandbox_not_found' },
  'an id in capitals': { request: () => read(`/v1/sandboxes/${SOMEBODY.toUpperCase()}`), codes: ['invalid_id', 'sandbox_not_found'] },
  'an id with NUL': { request: () => read('/v1/sandboxes/sbl1%00aaaa'), codes: ['invalid_id', 'sandbox_not_found', 'invalid_request'] },
  'an id with slashes': {
    request: () => read('/v1/sandboxes/..%2f..%2fetc'),
    codes: ['invalid_id', 'sandbox_not_found', 'invalid_request', 'route_not_found'],
  },
  'an id that is too long': {
    request: () => read(`/v1/sandboxes/${'a'.repeat(5_000)}`),
    codes: ['invalid_id', 'sandbox_not_found', 'invalid_request', 'route_not_found'],
  },
  'an escape that is none': { request: () => read('/v1/sandboxes/%zz'), codes: ['invalid_request', 'invalid_id'] },
  'an escape that is no UTF-8': { request: () => read('/v1/sandboxes/%ff%fe'), codes: ['invalid_request', 'invalid_id', 'sandbox_not_found'] },
  'an operation that nobody has': { request: () => read('/v1/operations/opaaaaaaaaaaaaaaaa'), codes: 'operation_not_found' },
  'an operation id that is none': { request: () => read('/v1/operations/1'), codes: ['invalid_id', 'operation_not_found'] },
  'a host that nobody has': { request: () => read('/v1/hosts/hoaaaaaaaaaaaaaaaa'), codes: 'host_not_found' },
  'a template that nobody has': { request: () => read('/v1/templates/no-such'), codes: 'template_not_found' },
  'a path that is none': { request: () => read('/v1/nothing/here'), codes: 'route_not_found' },
  'the root of the version': { request: () => read('/v1'), codes: 'route_not_found' },
  'a method that is not for this path': {
    request: () => ({ method: 'PUT', path: '/v1/sandboxes', headers: JSON_TYPE, body: '{}' }),
    codes: 'method_not_allowed',
  },
  'an extension that is too short': {
    request: () => ({ method: 'POST', path: `/v1/sandboxes/${SOMEBODY}/extend`, headers: JSON_TYPE, body: '{"ttl_seconds":1}' }),
    codes: ['invalid_request', 'sandbox_not_found'],
  },
  'an extension of what is not there': {
    request: () => ({ method: 'POST', path: `/v1/sandboxes/${SOMEBODY}/extend`, headers: JSON_TYPE, body: '{"ttl_seconds":600}' }),
    codes: 'sandbox_not_found',
  },
  'a change with unknown fields': {
    request: () => ({ method: 'PATCH', path: `/v1/sandboxes/${SOMEBODY}`, headers: JSON_TYPE, body: '{"status":"ready"}' }),
    codes: 'invalid_request',
  },
  'a delete of what is not there': { request: () => ({ method: 'DELETE', path: `/v1/sandboxes/${SOMEBODY}` }), codes: 'sandbox_not_found' },
  'a key with unknown fields': {
    request: () => ({ method: 'POST', path: '/v1/api-keys', headers: JSON_TYPE, body: '{"name":"x","key":"sgk_mine"}' }),
    codes: 'invalid_request',
  },
  'a key with a role that is none': {
    request: () => ({ method: 'POST', path: '/v1/api-keys', headers: JSON_TYPE, body: '{"name":"x","role":"root"}' }),
    codes: 'invalid_request',
  },
  'a revocation of what is not there': { request: () => ({ method: 'DELETE', path: '/v1/api-keys/akaaaaaaaaaaaaaaaa' }), codes: 'api_key_not_found' },
}

describe('requests that are refused', () => {
  for (const [what, { request, codes }] of Object.entries(REFUSALS)) {
    test(what, async () => {
      assertProblem(what, await call(request()), codes)
    })
  }
})

const NO_KEYS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'no key': { authorization: '' },
  'another scheme': { authorization: 'Basic dXNlcjpwYXNz' },
  'a key without a scheme': { authorization: 'sgk_x' },
  'a key that is no key': { authorization: 'Bearer hello' },
  'a key that nobody has': { authorization: `Bearer sgk_${'A'.repeat(43)}` },
  'a key with a tail': { authorization: `Bearer sgk_${'A'.repeat(43)}x` },
  'a very long key': { authorization: `Bearer sgk_${'A'.repeat(6_000)}` },
}

describe('keys that are none', () => {
  for (const [what, headers] of Object.entries(NO_KEYS)) {
    test(what, async () => {
      assertProblem(what, await call({ ...read('/v1/sandboxes'), headers }), 'unauthenticated')
      assertProblem(what, await call({ ...createWith({}), headers: { ...JSON_TYPE, ...headers } }), 'unauthenticated')
    })
  }

  test('a key in the query is no key', async () => {
    const answer = await rawHttp(installation.apiUrl, { method: 'GET', path: `/v1/sandboxes?api_key=${installation.operatorKey}` })
    assertProblem('a key in the query', answer, 'unauthenticated')
  })
})

test('health and documents need no key', async () => {
  for (const path of ['/healthz', '/readyz', '/openapi.json']) assert.equal((await rawHttp(installation.apiUrl, { method: 'GET', path })).status, 200, path)
})
