import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wireCommand } from '../src/command.ts'
import { base64OfBytes, bytesOfBase64, bytesOfText, percentEncode, textOfBytes } from '../src/encoding.ts'
import { errorOfAnswer, parseRetryAfter, SandglassError } from '../src/error.ts'
import { findConnection } from '../src/profile.ts'
import { planRetry } from '../src/retry.ts'
import { isFinal, planReconnect, refusalOf } from '../src/session-plan.ts'

const API = 'http://api'
const failsWith = (code: string) => (error: unknown) => error instanceof SandglassError && error.code === code

test('delays grow, stay below their ceiling, and honour Retry-After', () => {
  const error = new SandglassError('unavailable')
  assert.deepEqual(
    [1, 2, 3, 4].map((attempt) => planRetry(error, attempt, 1)),
    [100, 200, 400, 800],
  )
  assert.equal(planRetry(error, 5, 0), undefined)
  assert.equal(planRetry(new SandglassError('overloaded', 'x', { retryAfterSeconds: 2 }), 1, 0.5), 2_050)
  for (const code of ['sandbox_not_found', 'quota_exceeded', 'internal', 'client_timeout'] as const)
    assert.equal(planRetry(new SandglassError(code), 1, 0), undefined, code)
})

test('Retry-After is seconds or a date', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  assert.equal(parseRetryAfter('7', now), 7)
  assert.equal(parseRetryAfter('Thu, 01 Jan 2026 00:00:09 GMT', now), 9)
  assert.equal(parseRetryAfter('Wed, 31 Dec 2025 00:00:00 GMT', now), 0)
  for (const odd of [null, 'soon', '-1', '']) assert.equal(parseRetryAfter(odd, now), undefined)
})

test('reconnecting ends with its budget; refusals are final, lost contact is not', () => {
  assert.equal(planReconnect(3, 60_000, 60_000, 1), undefined)
  assert.equal(planReconnect(0, 0, 60_000, 1), 50)
  assert.equal(planReconnect(1_000, 59_999, 60_000, 1), 2_000)
  assert.equal(planReconnect(0, 0, 0, 1), undefined)
  assert.equal(refusalOf(4410, '', API)?.code, 'sandbox_ended')
  for (const code of [1000, 1001, 1005, 1006, 1011, 1013, 4502]) assert.equal(refusalOf(code, '', API), undefined)
  assert.equal(isFinal(new SandglassError('lost_contact')), false)
  assert.equal(isFinal(new SandglassError('too_many_sessions')), true)
  assert.equal(isFinal(new SandglassError('sandbox_ended')), true)
})

test('answers that are not problems become the nearest code', () => {
  const of = (status: number) => errorOfAnswer({ status, url: 'http://x/y', apiUrl: API, text: '<html>', retryAfterSeconds: undefined }).code
  assert.deepEqual([401, 403, 404, 413, 429, 500, 502, 503, 504].map(of), [
    'unauthenticated',
    'forbidden',
    'route_not_found',
    'body_too_large',
    'overloaded',
    'internal',
    'lost_contact',
    'overloaded',
    'client_timeout',
  ])
})

test('half of a surrogate pair is refused instead of becoming another character', () => {
  assert.deepEqual(Buffer.from(bytesOfText('a🤣')), Buffer.from('a🤣'))
  for (const text of ['\ud83e', 'a\udd23b', '🤣\ud83e']) {
    assert.throws(() => bytesOfText(text), failsWith('invalid_request'))
    assert.throws(() => percentEncode(text), failsWith('invalid_request'))
    assert.throws(() => wireCommand({ argv: [text, new Uint8Array([255])] }, {}), failsWith('invalid_request'))
  }
})

test('a connection is what was given, then the environment, then the profile', () => {
  const profile = JSON.stringify({ url: 'http://127.0.0.1:7070', api_key: 'sgk_p' })
  const where = (environment: Record<string, string>, file?: string) => ({
    environment,
    readText: (path: string) => (path === `${environment['SANDGLASS_HOME'] ?? '/var/lib/sandglass'}/profile.json` ? file : undefined),
  })
  const found = (apiKey: string, url: string, ...others: string[]) => ({ url, urls: [url, ...others], apiKey })
  assert.deepEqual(findConnection({ url: 'https://a/', apiKey: 'k' }, where({ SANDGLASS_URL: 'http://b' })), found('k', 'https://a'))
  assert.deepEqual(findConnection({}, where({ SANDGLASS_URL: 'http://b', SANDGLASS_API_KEY: 'e' }, profile)), found('e', 'http://b'))
  assert.deepEqual(findConnection({}, where({}, profile)), found('sgk_p', 'http://127.0.0.1:7070'))
  assert.deepEqual(findConnection({}, where({ SANDGLASS_HOME: '/h' }, profile)), found('sgk_p', 'http://127.0.0.1:7070'))
  assert.deepEqual(findConnection({ apiKey: 'mine' }, where({}, profile)), found('mine', 'http://127.0.0.1:7070'))
  // Replicas.
  assert.deepEqual(findConnection({ url: 'http://a:1, http://b:2/', apiKey: 'k' }, where({})), found('k', 'http://a:1', 'http://b:2'))
  const fleet = JSON.stringify({ url: 'http://a:1,http://b:2', api_key: 'sgk_f' })
  assert.deepEqual(findConnection({ url: 'http://b:2' }, where({}, fleet)), found('sgk_f', 'http://b:2'))
  assert.throws(() => findConnection({ url: 'http://a:1,http://c:3' }, where({}, fleet)), failsWith('unauthenticated'))
  assert.throws(() => findConnection({}, where({})), failsWith('unauthenticated'))
  // The key of this machine is not sent to another.
  assert.throws(() => findConnection({ url: 'https://elsewhere' }, where({}, profile)), failsWith('unauthenticated'))
  assert.throws(() => findConnection({ url: 'ftp://a', apiKey: 'k' }, where({})), failsWith('invalid_request'))
  assert.throws(() => findConnection({ url: 'https://u:p@a', apiKey: 'k' }, where({})), failsWith('invalid_request'))
  assert.throws(() => findConnection({}, where({}, '{"url":1}')), failsWith('internal'))
})

test('bytes, base64 and percent-encoding', () => {
  const all = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256)
  assert.deepEqual(bytesOfBase64(base64OfBytes(all)), all)
  assert.equal(percentEncode('/a b/é%'), '/a%20b/%C3%A9%25')
  assert.equal(percentEncode(Uint8Array.from([0x2f, 0, 0xff])), '/%00%FF')
  assert.equal(textOfBytes(Uint8Array.from([0xef, 0xbb, 0xbf, 0x61])), '\uFEFFa')
})
