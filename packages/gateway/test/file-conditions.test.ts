/** Versions and parts of files by RFC 9110: what reaches the guest, and what a real guest makes of it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ProblemSchema, parserOf } from '@sandglass/contract'
import { conditionsOf } from '../src/files/conditions.ts'
import { Bench } from './peers/bench.ts'

const problem = parserOf(ProblemSchema)

test('tags: If-Match compares strongly, If-None-Match weakly, and what is no tag is refused', () => {
  const match = (value: string) => conditionsOf('PUT', { 'if-match': value }).headers['if-match']
  const none = (value: string) => conditionsOf('GET', { 'if-none-match': value }).headers['if-none-match']
  assert.equal(match('*'), '*')
  assert.equal(match('"a"'), '"a"')
  assert.equal(match(' "a" ,W/"b", , "c" '), '"a", "c"')
  assert.equal(match('W/"a"'), '""')
  assert.equal(match('"a,b"'), '""')
  assert.equal(none('W/"a", "b"'), '"a", "b"')
  assert.equal(none('*'), '*')
  for (const bad of ['', 'a', '"a', 'a"', '"a" "b"', 'w/"a"', '*, "a"', '"a"b', 'W/ "a"']) {
    assert.throws(() => match(bad), { code: 'invalid_request' }, bad)
    assert.throws(() => none(bad), { code: 'invalid_request' }, bad)
  }
})

test('ranges are for GET, and If-Range is a range of one version or none at all', () => {
  const asked = { range: 'bytes=1-2' }
  assert.deepEqual(conditionsOf('GET', asked), { headers: asked, elseWhole: undefined })
  assert.deepEqual(conditionsOf('GET', { range: 'Bytes=1-2' }).headers, asked)
  for (const method of ['HEAD', 'PUT']) assert.deepEqual(conditionsOf(method, asked).headers, {})
  assert.deepEqual(conditionsOf('GET', { ...asked, 'if-range': '"a"', 'if-none-match': '"b"' }), {
    headers: { range: 'bytes=1-2', 'if-match': '"a"', 'if-none-match': '"b"' },
    elseWhole: { 'if-none-match': '"b"' },
  })
  for (const ifRange of ['W/"a"', 'Tue, 14 Nov 2023 22:13:20 GMT', 'nonsense']) {
    assert.deepEqual(conditionsOf('GET', { ...asked, 'if-range': ifRange }), { headers: {}, elseWhole: undefined }, ifRange)
  }
  assert.deepEqual(conditionsOf('GET', { ...asked, 'if-range': '"a"', 'if-match': '"a"' }).headers, { 'if-match': '"a"' })
})

let bench: Bench
let path: string
let etag: string
before(async () => {
  bench = await Bench.withGuest()
  path = `/files?path=${bench.guest?.directory ?? ''}/ten`
  const written = await bench.ask(path, { method: 'PUT', body: '0123456789' })
  etag = ((await written.json()) as { etag: string }).etag
})
after(() => bench[Symbol.asyncDispose]())

async function outcome(method: string, headers: Record<string, string>, body?: string) {
  const response = await bench.ask(path, { method, headers, ...(body === undefined ? {} : { body }) })
  const text = await response.text()
  const { headers: told } = response
  const isProblem = told.get('content-type') === 'application/problem+json'
  return { status: response.status, text: isProblem && text !== '' ? problem.parse(JSON.parse(text)).code : text, range: told.get('content-range'), told }
}

const READS: [range: string, status: number, text: string, contentRange: string | null][] = [
  ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
  ['bytes=7-', 206, '789', 'bytes 7-9/10'],
  ['bytes=-3', 206, '789', 'bytes 7-9/10'],
  ['bytes=-30', 206, '0123456789', 'bytes 0-9/10'],
  ['bytes=8-400', 206, '89', 'bytes 8-9/10'],
  ['bytes=9-9', 206, '9', 'bytes 9-9/10'],
  ['bytes=10-', 416, 'range_not_satisfiable', 'bytes */10'],
  ['bytes=10-12', 416, 'range_not_satisfiable', 'bytes */10'],
  ['bytes=-0', 416, 'range_not_satisfiable', 'bytes */10'],
  ['bytes=5-2', 200, '0123456789', null],
  ['bytes=a-b', 200, '0123456789', null],
  ['bytes=', 200, '0123456789', null],
  ['bytes=-', 200, '0123456789', null],
  ['lines=1-2', 200, '0123456789', null],
  ['bytes=0-1,4-5', 200, '0123456789', null],
]

for (const [range, status, text, contentRange] of READS) {
  test(`GET with Range: ${range}`, async () => {
    const got = await outcome('GET', { range })
    assert.deepEqual([got.status, got.text, got.range], [status, text, contentRange])
    const head = await outcome('HEAD', { range })
    assert.deepEqual([head.status, head.told.get('content-length'), head.told.get('accept-ranges')], [200, '10', 'bytes'])
  })
}

test('If-Range: the part of the version that was meant, else all of the one that is there', async () => {
  const part = { range: 'bytes=2-4' }
  assert.deepEqual((await outcome('GET', { ...part, 'if-range': etag })).text, '234')
  for (const ifRange of ['"other"', `W/${etag}`, new Date().toUTCString()]) {
    const got = await outcome('GET', { ...part, 'if-range': ifRange })
    assert.deepEqual([got.status, got.text], [200, '0123456789'], ifRange)
  }
})

test('If-Match and If-None-Match on reads: 412, 304 with its ETag, and If-Match first', async () => {
  assert.equal((await outcome('GET', { 'if-match': '"other"' })).text, 'precondition_failed')
  assert.equal((await outcome('HEAD', { 'if-match': '"other"' })).status, 412)
  assert.equal((await outcome('GET', { 'if-match': `"other", ${etag}` })).status, 200)
  for (const method of ['GET', 'HEAD']) {
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const known = await outcome(method, { 'if-none-match': tag })
      assert.deepEqual([known.status, known.text, known.told.get('etag')], [304, '', etag], `${method} ${tag}`)
    }
  }
  assert.equal((await outcome('GET', { 'if-none-match': '"other"' })).status, 200)
  assert.equal((await outcome('GET', { 'if-match': '"other"', 'if-none-match': etag })).status, 412)
  assert.equal((await outcome('GET', { 'if-match': 'other' })).text, 'invalid_request')
  // A condition comes before the range.
  assert.equal((await outcome('GET', { range: 'bytes=20-', 'if-none-match': etag })).status, 304)
})

test('writes: one of many that saw the same version wins, and a refused one leaves the file as it was', async () => {
  assert.equal((await outcome('PUT', { 'if-match': `W/${etag}` }, 'x')).text, 'precondition_failed')
  assert.equal((await outcome('PUT', { 'if-none-match': '*' }, 'x')).text, 'precondition_failed')
  assert.equal((await outcome('PUT', { 'content-range': 'bytes 0-0/10' }, 'x')).text, 'invalid_request')
  assert.equal((await outcome('GET', {})).text, '0123456789')
  // A range says nothing about a write.
  const statuses = await Promise.all(Array.from({ length: 8 }, (_, index) => outcome('PUT', { 'if-match': etag, range: 'bytes=0-0' }, `writer ${index}`)))
  const won = statuses.filter(({ status }) => status === 200)
  assert.equal(won.length, 1)
  assert.ok(statuses.every(({ status }) => status === 200 || status === 412))
  assert.match((await outcome('GET', {})).text, /^writer \d$/)
  assert.equal((await outcome('GET', { 'if-none-match': etag })).status, 200)
})
