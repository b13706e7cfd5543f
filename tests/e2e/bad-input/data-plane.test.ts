/** Bad input at the gateway over HTTP: each gets its named error, and costs nothing. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type ErrorCode, LIMITS } from '@sandglass/contract'
import { Sandbox } from '@sandglass/sdk'
import { afterTests, sharedInstallation } from '../file-installation.ts'
import type { Installation } from '../installation.ts'
import { type RawAnswer, type RawRequest, rawHttp } from '../subject/raw-http.ts'
import { assertCostNothing, type Costs, costsOf } from './costs.ts'
import { assertProblem } from './problem.ts'

let installation: Installation
let sandbox: Sandbox
let costs: Costs
before(async () => {
  installation = await sharedInstallation()
  sandbox = await Sandbox.create({ client: installation.client(), ttlSeconds: 900 })
  await sandbox.files.write('/tmp/file', 'twelve bytes')
  costs = await costsOf(installation, sandbox)
})
afterTests(async () => {
  if (sandbox === undefined) return
  await assertCostNothing(installation, costs, sandbox)
  await sandbox.delete()
})

const JSON_TYPE = { 'content-type': 'application/json' }
const BYTES_TYPE = { 'content-type': 'application/octet-stream' }

/** @param path behind `/v1/sandboxes/{id}` */
function call(request: RawRequest, id: string = sandbox.id): Promise<RawAnswer> {
  const headers = { authorization: `Bearer ${installation.operatorKey}`, accept: 'application/json', ...request.headers }
  return rawHttp(sandbox.resource.gateway_url, { ...request, path: `/v1/sandboxes/${id}${request.path}`, headers })
}

const exec = (body: string, headers: Readonly<Record<string, string>> = JSON_TYPE): RawRequest => ({ method: 'POST', path: '/exec', headers, body })
const execWith = (fields: object): RawRequest => exec(JSON.stringify(fields))
const get = (path: string): RawRequest => ({ method: 'GET', path })
const post = (path: string, fields: object): RawRequest => ({ method: 'POST', path, headers: JSON_TYPE, body: JSON.stringify(fields) })

const INVALID: Readonly<Record<string, object>> = {
  'no command': {},
  'a program and a line': { argv: ['true'], shell: 'true' },
  'an empty program': { argv: [] },
  'a program that is text': { argv: 'true' },
  'an argument that is a number': { argv: ['sleep', 1] },
  'an argument with NUL': { argv: ['echo', 'a\0b'] },
  'too many arguments': { argv: Array.from({ length: LIMITS.argvEntries + 1 }, () => 'x') },
  'bytes that are no base64': { argv_b64: ['!!!'] },
  'an unknown field': { argv: ['true'], detach: true },
  'a timeout of nothing': { argv: ['true'], timeout_ms: 0 },
  'a negative timeout': { argv: ['true'], timeout_ms: -5 },
  'a timeout as text': { argv: ['true'], timeout_ms: '10s' },
  'a timeout beyond all bounds': { argv: ['true'], timeout_ms: LIMITS.processTimeoutMs + 1 },
  'a relative directory': { argv: ['true'], cwd: 'tmp' },
  'a directory with NUL': { argv: ['true'], cwd: '/tmp\0' },
  'a variable with = in its name': { argv: ['true'], env: { 'A=B': '' } },
  'a variable that is a number': { argv: ['true'], env: { A: 1 } },
  'a user that is too long': { argv: ['true'], user: 'u'.repeat(LIMITS.userCharacters + 1) },
  'input that is no base64': { argv: ['cat'], stdin: '!!!', stdin_encoding: 'base64' },
  'an encoding that is none': { argv: ['cat'], stdin: 'x', stdin_encoding: 'utf-16' },
  'a key with spaces': { argv: ['true'], process_key: 'a b' },
  'a terminal without columns': { argv: ['true'], tty: { cols: 0, rows: 24 } },
  'a terminal that is too wide': { argv: ['true'], tty: { cols: 65_535, rows: 24 } },
}

describe('fields of a command', () => {
  for (const [what, fields] of Object.entries(INVALID)) {
    test(what, async () => {
      assertProblem(what, await call(execWith(fields)), ['invalid_request', 'limit_exceeded'])
    })
  }
})

type Refusal = { readonly request: RawRequest; readonly codes: ErrorCode | readonly ErrorCode[] }
const PATHS: readonly ErrorCode[] = ['path_invalid', 'invalid_request']
const NOBODY = 'praaaaaaaaaaaaaaaa'

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a body that is no JSON': { request: exec('{'), codes: 'invalid_request' },
  'a body that is nothing': { request: exec(''), codes: 'invalid_request' },
  'JSON too deep': { request: exec(`${'{"env":'.repeat(50_000)}1${'}'.repeat(50_000)}`), codes: ['invalid_request', 'limit_exceeded'] },
  'a body that is too large': { request: exec(JSON.stringify({ argv: ['true'], shell: 'x'.repeat(2 * LIMITS.apiBodyBytes) })), codes: 'body_too_large' },
  'another content type': { request: exec('argv=true', { 'content-type': 'application/x-www-form-urlencoded' }), codes: 'unsupported_media_type' },
  'a path that is none': { request: get('/nothing'), codes: 'route_not_found' },
  'a method that is not for this path': { request: { method: 'DELETE', path: '/exec' }, codes: 'method_not_allowed' },
  'a process that nobody has': { request: get(`/processes/${NOBODY}`), codes: 'process_not_found' },
  'a process id that is none': { request: get('/processes/1'), codes: ['process_not_found', 'invalid_id', 'invalid_request'] },
  'a process key that nobody has': { request: get('/processes/key:nobody'), codes: 'process_not_found' },
  'a process id with slashes': {
    request: get('/processes/..%2f..%2fv1%2fidentity'),
    codes: ['process_not_found', 'invalid_id', 'invalid_request', 'route_not_found'],
  },
  'a signal that is none': { request: post(`/processes/${NOBODY}/signal`, { signal: 'BOOM' }), codes: 'invalid_request' },
  'a signal to nobody': { request: post(`/processes/${NOBODY}/signal`, { signal: 'TERM' }), codes: 'process_not_found' },
  'input for nobody': { request: { method: 'POST', path: `/processes/${NOBODY}/stdin`, headers: BYTES_TYPE, body: 'x' }, codes: 'process_not_found' },
  'an offset that is no number': { request: get(`/processes/${NOBODY}/output?since=begin`), codes: 'invalid_request' },
  'an offset below nothing': { request: get(`/processes/${NOBODY}/output?since=-1`), codes: 'invalid_request' },
  'a stream that is none': { request: get(`/processes/${NOBODY}/output?stream=stdin`), codes: 'invalid_request' },
  'a file without a path': { request: get('/files'), codes: PATHS },
  'an empty path': { request: get('/files?path='), codes: PATHS },
  'a relative path': { request: get('/files?path=tmp/file'), codes: PATHS },
  'a path with NUL': { request: get('/files?path=/tmp/%00file'), codes: PATHS },
  'a path with an escape that is none': { request: get('/files?path=/tmp/%zz'), codes: PATHS },
  'a path with half an escape': { request: get('/files?path=/tmp/%4'), codes: PATHS },
  'a path that is too long': { request: get(`/files?path=/${'a/'.repeat(LIMITS.pathBytes / 2)}b`), codes: PATHS },
  'a name that is too long': { request: get(`/files?path=/tmp/${'a'.repeat(LIMITS.pathComponentBytes + 1)}`), codes: PATHS },
  'two paths': { request: get('/files?path=/tmp/file&path=/etc/passwd'), codes: PATHS },
  'a query field that is unknown': { request: get('/files?path=/tmp/file&sudo=1'), codes: 'invalid_request' },
  'a user that nobody is': { request: get('/files?path=/tmp/file&user=no-such-user'), codes: 'user_not_found' },
  'a mode that is none': { request: { method: 'PUT', path: '/files?path=/tmp/new&mode=rwx', headers: BYTES_TYPE, body: 'x' }, codes: 'invalid_request' },
  'a page that is too large': { request: get('/files/list?path=/tmp&limit=99999'), codes: ['invalid_request', 'limit_exceeded'] },
  'a range behind the end': { request: { ...get('/files?path=/tmp/file'), headers: { range: 'bytes=100-' } }, codes: 'range_not_satisfiable' },
  'an ETag that is another': { request: { ...get('/files?path=/tmp/file'), headers: { 'if-match': '"other"' } }, codes: 'precondition_failed' },
  'a directory as a file': { request: get('/files?path=/tmp'), codes: 'is_a_directory' },
  'a device as a file': { request: get('/files?path=/dev/zero'), codes: 'not_a_regular_file' },
  'a file as a directory': { request: get('/files/list?path=/tmp/file'), codes: 'not_a_directory' },
  'a directory with unknown fields': { request: post('/files/mkdir', { path: '/tmp/new', owner: 'me' }), codes: 'invalid_request' },
  'a directory without a path': { request: post('/files/mkdir', {}), codes: PATHS },
  'a move to nowhere': { request: post('/files/move', { from: '/tmp/file' }), codes: PATHS },
  'a mode with unknown fields': { request: post('/files/chmod', { path: '/tmp/file', mode: '0644', acl: [] }), codes: 'invalid_request' },
  'an archive that is none': {
    request: { method: 'PUT', path: '/files/archive?path=/tmp/unpacked', headers: { 'content-type': 'application/x-tar' }, body: 'not a tar '.repeat(200) },
    codes: 'archive_invalid',
  },
  'a terminal without an upgrade': { request: get('/terminal'), codes: ['invalid_request', 'method_not_allowed', 'route_not_found'] },
}

describe('requests that are refused', () => {
  for (const [what, { request, codes }] of Object.entries(REFUSALS)) {
    test(what, async () => {
      assertProblem(what, await call(request), codes)
    })
  }
})

const IDS: Readonly<Record<string, { readonly id: string; readonly codes: readonly ErrorCode[] }>> = {
  'an id that nobody has': { id: 'sbl1aaaaaaaaaaaaaaaa', codes: ['sandbox_not_found'] },
  'a name in place of an id': { id: 'some-name', codes: ['invalid_id', 'sandbox_not_found'] },
  'an id that is too short': { id: 'sbl1', codes: ['invalid_id', 'sandbox_not_found'] },
  'an id with an escape that is none': { id: '%zz', codes: ['invalid_id', 'invalid_request'] },
  'an id with NUL': { id: 'sbl1%00', codes: ['invalid_id', 'invalid_request', 'sandbox_not_found'] },
  'an id with dots': { id: '..%2f..', codes: ['invalid_id', 'invalid_request', 'sandbox_not_found', 'route_not_found'] },
}

describe('ids that are none', () => {
  for (const [what, { id, codes }] of Object.entries(IDS)) {
    test(what, async () => {
      for (const request of [execWith({ argv: ['true'] }), get('/files?path=/etc/passwd'), get('/processes')])
        assertProblem(what, await call(request, id), codes)
    })
  }
})

test('without a key nothing is told', async () => {
  for (const path of ['/exec', '/files?path=/etc/passwd', '/processes', '/terminal']) {
    const method = path === '/exec' ? 'POST' : 'GET'
    const headers = { ...JSON_TYPE, authorization: '' }
    assertProblem(path, await call({ method, path, headers, ...(method === 'POST' ? { body: '{"argv":["true"]}' } : {}) }), 'unauthenticated')
  }
})

test('the file is as it was', async () => {
  assert.equal(await sandbox.files.readText('/tmp/file'), 'twelve bytes')
  assert.equal(await sandbox.files.exists('/tmp/new'), false)
})
