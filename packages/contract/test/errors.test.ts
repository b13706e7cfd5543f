import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError, ERRORS, isErrorCode, LIMITS, PUBLIC_ROUTES, parseProblem, problemOf } from '../src/index.ts'

test('every error has a status of its class, a title and says what to do next', () => {
  for (const [code, entry] of Object.entries(ERRORS)) {
    assert.match(code, /^[a-z_]+$/)
    assert.ok(entry.status >= 400 && entry.status < 600, code)
    assert.match(entry.title, /^[A-Z]/, code)
    assert.match(entry.next, /[.]$/, `${code} does not say what to do next`)
  }
})

test('a problem comes back as the error it was made from', () => {
  const problem = problemOf(new CodedError('quota_exceeded', 'Tenant acme runs 10 of 10 sandboxes.', { limit: { name: 'running_sandboxes', value: 10 } }), {
    requestId: 'rqaaaaaaaaaaaaaaaa',
    instance: '/v1/sandboxes',
  })
  assert.deepEqual(parseProblem(JSON.parse(JSON.stringify(problem))), problem)
  assert.equal(problem.status, 429)
  assert.equal(problem.type, '/docs/errors#quota_exceeded')
})

test('what is not a problem of ours is not read as one', () => {
  for (const value of [null, 'x', {}, { code: 'internal' }, { ...problemOf(new CodedError('internal')), code: 'made_up' }])
    assert.equal(parseProblem(value), undefined)
})

test('a cause is kept and never shown', () => {
  const error = new CodedError('internal', 'It broke.', { cause: new Error('password=hunter2') })
  assert.ok(error.cause instanceof Error)
  assert.ok(!JSON.stringify(problemOf(error)).includes('hunter2'))
})

test('routes name only errors of the registry, and no method and path twice', () => {
  const seen = new Set<string>()
  for (const [name, route] of Object.entries(PUBLIC_ROUTES)) {
    for (const code of route.errors) assert.ok(isErrorCode(code), `${name}: ${code}`)
    assert.ok(route.errors.includes('invalid_request'), `${name} refuses an unknown query, and says so`)
    const key = `${route.method} ${route.path}`
    assert.ok(!seen.has(key), key)
    seen.add(key)
  }
})

test('every limit is a positive number', () => {
  for (const [name, value] of Object.entries(LIMITS)) assert.ok(value > 0, name)
})
