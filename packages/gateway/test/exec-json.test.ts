import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { type ExecResult, ExecResultSchema, LIMITS, ProblemSchema, ProcessSchema, parserOf } from '@sandglass/contract'
import { Bench } from './peers/bench.ts'

const result = parserOf(ExecResultSchema)
const problem = parserOf(ProblemSchema)
const process = parserOf(ProcessSchema)
let bench: Bench
before(async () => {
  bench = await Bench.withGuest()
})
after(() => bench[Symbol.asyncDispose]())

async function run(body: Record<string, unknown>): Promise<ExecResult> {
  const response = await bench.post('/exec', body)
  const json: unknown = await response.json()
  assert.equal(response.status, 200, JSON.stringify(json))
  return result.parse(json)
}

async function refused(body: unknown): Promise<{ status: number; code: string; detail: string }> {
  const response = await bench.post('/exec', body)
  const { status, code, detail } = problem.parse(await response.json())
  assert.equal(response.status, status)
  return { status, code, detail }
}

const bytesOf = (text: string, encoding: 'utf-8' | 'base64') => Buffer.from(text, encoding)
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

test('a command is answered with its output, its exit code and how long it took', async () => {
  const { stdout, stderr, exit_code, signal, encoding, truncated, timed_out } = await run({ argv: ['sh', '-c', 'echo o; echo e >&2; exit 42'] })
  assert.deepEqual(
    { stdout, stderr, exit_code, signal, encoding, truncated, timed_out },
    { stdout: 'o\n', stderr: 'e\n', exit_code: 42, signal: null, encoding: { stdout: 'utf-8', stderr: 'utf-8' }, truncated: false, timed_out: false },
  )
})

test('EX12: stderr is never mixed into stdout', async () => {
  const { stdout, stderr } = await run({ argv: ['sh', '-c', 'for i in 1 2 3; do echo o$i; echo e$i >&2; done'] })
  assert.equal(stdout, 'o1\no2\no3\n')
  assert.equal(stderr, 'e1\ne2\ne3\n')
})

test('EX9: NUL, blank lines, CR and a missing last newline survive', async () => {
  const { stdout, encoding } = await run({ argv: ['printf', 'a\\0b\\377\\n\\n\\n b\\r\\nc'] })
  assert.equal(encoding.stdout, 'base64')
  assert.deepEqual(bytesOf(stdout, 'base64'), Buffer.from('a\0b\xff\n\n\n b\r\nc', 'latin1'))
  const text = await run({ argv: ['printf', 'a\\0b\\n\\n\\n b\\r\\nc'] })
  assert.equal(text.encoding.stdout, 'utf-8')
  assert.equal(text.stdout, 'a\0b\n\n\n b\r\nc')
})

test('EX8: characters that fall on chunk borders and output that is not UTF-8 keep their bytes', async () => {
  const script = "yes '日本語🤣é' | head -c 1000003 | tee /dev/stderr | sha256sum"
  const { stdout, stderr, encoding } = await run({ argv: ['bash', '-c', script] })
  assert.equal(bytesOf(stderr, encoding.stderr).byteLength, 1_000_003)
  assert.equal(sha256(bytesOf(stderr, encoding.stderr)), stdout.split(' ')[0])
  const random = await run({ argv: ['bash', '-c', 'head -c 65536 /dev/urandom | tee /dev/stderr | sha256sum'] })
  assert.equal(sha256(bytesOf(random.stderr, random.encoding.stderr)), random.stdout.split(' ')[0])
})

test('EX4: without input a reader sees its end at once; input that comes with the request is fed, then ended', async () => {
  assert.equal((await run({ argv: ['cat'] })).stdout, '')
  assert.equal((await run({ argv: ['cat'], stdin: 'héllo\n' })).stdout, 'héllo\n')
  assert.equal((await run({ argv: ['cat'], stdin: '' })).stdout, '')
  const bytes = Buffer.from([0, 255, 10, 13])
  const { stdout, encoding } = await run({ argv: ['cat'], stdin: bytes.toString('base64'), stdin_encoding: 'base64' })
  assert.deepEqual(bytesOf(stdout, encoding.stdout), bytes)
  const large = 'x'.repeat(LIMITS.execJsonStdinBytes)
  assert.equal((await run({ argv: ['bash', '-c', 'sleep 0.2; wc -c'], stdin: large })).stdout.trim(), String(large.length))
})

test('a command that does not read its input is not disturbed by it', async () => {
  const { exit_code, stdout } = await run({ argv: ['sh', '-c', 'exec 0<&-; echo ok'], stdin: 'x'.repeat(300_000) })
  assert.equal(stdout, 'ok\n')
  assert.equal(exit_code, 0)
})

test('output beyond the limit is left out and said to be; the process is not held up', async () => {
  const bytes = LIMITS.execJsonOutputBytes + 1_000_000
  const { stdout, stderr, truncated, exit_code } = await run({ argv: ['bash', '-c', `yes | head -c ${bytes}; echo done >&2`] })
  assert.equal(truncated, true)
  assert.equal(exit_code, 0)
  assert.equal(stderr, 'done\n')
  assert.equal(stdout.length, LIMITS.execJsonOutputBytes)
})

test('a timeout is a result', async () => {
  const { timed_out, exit_code, signal, duration_ms } = await run({ argv: ['sleep', '1000'], timeout_ms: 200 })
  assert.equal(timed_out, true)
  assert.equal(exit_code, null)
  assert.equal(signal, 'TERM')
  assert.ok(duration_ms >= 200 && duration_ms < 60_000, `${duration_ms}`)
  assert.equal((await run({ argv: ['echo', 'ok'] })).stdout, 'ok\n')
})

test('EX7: exit codes and output of very fast commands are never lost', async () => {
  for (let round = 0; round < 4; round += 1) {
    const all = await Promise.all(Array.from({ length: 64 }, (_, index) => run({ argv: ['sh', '-c', `echo ${index}; exit ${index}`] })))
    all.forEach(({ stdout, exit_code }, index) => {
      assert.deepEqual({ stdout, exit_code }, { stdout: `${index}\n`, exit_code: index })
    })
  }
})

test('one exec is one request to the host, on one connection', async () => {
  await run({ argv: ['true'] })
  const before = bench.host.requests.length
  await run({ argv: ['true'] })
  assert.equal(bench.host.requests.length, before + 1)
  assert.equal(bench.host.sessionsOpened, 1)
})

test('the same process_key is the same process; another command with it is refused', async () => {
  const first = await run({ argv: ['sh', '-c', 'echo $$'], process_key: 'once' })
  const again = await run({ argv: ['sh', '-c', 'echo $$'], process_key: 'once' })
  assert.equal(again.process_id, first.process_id)
  assert.equal(again.stdout, first.stdout)
  assert.equal((await refused({ argv: ['true'], process_key: 'once' })).code, 'process_key_conflict')
})

test('background answers at once, and its input is fed', async () => {
  const response = await bench.post('/exec', { argv: ['bash', '-c', 'read line; sleep 0.1; echo got $line'], stdin: 'word\n', background: true })
  assert.equal(response.status, 201)
  const started = process.parse(await response.json())
  assert.equal(started.state, 'running')
  const output = await bench.ask(`/processes/${started.id}/output?follow=1`)
  assert.equal(await output.text(), 'got word\n')
})

const environment = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`SG_${index}`, 'v']))

test('exec takes as much of an environment as there may be', async () => {
  const { stdout } = await run({ argv: ['sh', '-c', 'env | grep -c ^SG_'], env: environment(LIMITS.envEntries) })
  assert.equal(stdout, `${LIMITS.envEntries}\n`)
  const long = { ['K'.repeat(LIMITS.envKeyCharacters)]: 'v'.repeat(LIMITS.envValueBytes) }
  assert.equal((await run({ argv: ['true'], env: long })).exit_code, 0)
})

const REFUSALS: [name: string, body: unknown, code: string][] = [
  ['an unknown field', { argv: ['true'], tyop: 1 }, 'invalid_request'],
  ['no command', {}, 'invalid_request'],
  ['two commands', { argv: ['true'], shell: 'true' }, 'invalid_request'],
  ['a wrong type', { argv: 'true' }, 'invalid_request'],
  ['an empty argv', { argv: [] }, 'invalid_request'],
  ['NUL in an argument', { argv: ['echo', 'a\0b'] }, 'invalid_request'],
  ['a bad user name', { argv: ['true'], user: 'no-such-user-here' }, 'user_not_found'],
  ['a missing directory', { argv: ['true'], cwd: '/no/such' }, 'cwd_not_found'],
  ['a relative directory', { argv: ['true'], cwd: 'tmp' }, 'invalid_request'],
  ['a missing program', { argv: ['/no/such'] }, 'executable_not_found'],
  ['a program that cannot run', { argv: ['/etc/passwd'] }, 'executable_not_runnable'],
  ['a key with a space', { argv: ['true'], process_key: 'a b' }, 'invalid_request'],
  ['a key of 129 characters', { argv: ['true'], process_key: 'k'.repeat(129) }, 'invalid_request'],
  ['a timeout of zero', { argv: ['true'], timeout_ms: 0 }, 'invalid_request'],
  ['half of a surrogate pair in input', { argv: ['cat'], stdin: 'a\ud800' }, 'invalid_request'],
  ['half of a surrogate pair in an argument', { argv: ['echo', '\udc00'] }, 'invalid_request'],
  ['input that is not base64', { argv: ['cat'], stdin: '***', stdin_encoding: 'base64' }, 'invalid_request'],
  ['an encoding without input', { argv: ['cat'], stdin_encoding: 'base64' }, 'invalid_request'],
  ['arguments that are too long', { argv: ['echo', 'x'.repeat(LIMITS.argvBytes)] }, 'limit_exceeded'],
  ['too much input', { argv: ['cat'], stdin: 'x'.repeat(LIMITS.execJsonStdinBytes + 1) }, 'limit_exceeded'],
  ['a body that is too large', { argv: ['echo', 'x'.repeat(LIMITS.apiBodyBytes)] }, 'body_too_large'],
  ['too many environment variables', { argv: ['env'], env: environment(LIMITS.envEntries + 1) }, 'invalid_request'],
  ['an environment variable with too long a name', { argv: ['env'], env: { ['K'.repeat(LIMITS.envKeyCharacters + 1)]: '' } }, 'invalid_request'],
  ['an environment variable with too much in it', { argv: ['env'], env: { K: 'v'.repeat(LIMITS.envValueBytes + 1) } }, 'invalid_request'],
  ['a terminal of zero columns', { argv: ['true'], tty: { cols: 0, rows: 24 } }, 'invalid_request'],
  ['an array', [], 'invalid_request'],
  ['null', null, 'invalid_request'],
]

for (const [name, body, code] of REFUSALS) {
  test(`exec refuses ${name} with ${code}`, async () => {
    assert.equal((await refused(body)).code, code)
  })
}

test('half of a surrogate pair is refused by the name of its field', async () => {
  assert.match((await refused({ argv: ['cat'], stdin: 'a\ud800' })).detail, /^\/stdin holds half of a surrogate pair/)
})

test('headers that are too long are refused by the name of the limit', async () => {
  const response = await bench.ask('/processes', { headers: { 'x-long': 'x'.repeat(60_000) } })
  const { code, limit } = problem.parse(await response.json())
  assert.deepEqual([response.status, code, limit], [422, 'limit_exceeded', { name: 'requestHeadBytes', value: LIMITS.requestHeadBytes }])
})

test('exec refuses bodies that are not JSON, and other media types', async () => {
  for (const body of ['{', '', 'nul', Buffer.from([0x22, 0xff, 0x22])]) {
    const response = await bench.ask('/exec', { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    assert.equal(problem.parse(await response.json()).code, 'invalid_request')
  }
  const response = await bench.ask('/exec', { method: 'POST', body: 'argv=true', headers: { 'content-type': 'application/x-www-form-urlencoded' } })
  assert.equal(problem.parse(await response.json()).code, 'unsupported_media_type')
})
