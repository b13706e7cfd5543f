import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ProblemSchema, ProcessSchema, parserOf, StdinAcceptedSchema } from '@sandglass/contract'
import { Bench, SANDBOX } from './peers/bench.ts'

const problem = parserOf(ProblemSchema)
const process = parserOf(ProcessSchema)
const accepted = parserOf(StdinAcceptedSchema)
const WAIT_MS = 60_000
let bench: Bench
before(async () => {
  bench = await Bench.withGuest()
})
after(() => bench[Symbol.asyncDispose]())

const codeOf = async (response: Response) => problem.parse(await response.json()).code

async function background(script: string, more: Record<string, unknown> = {}) {
  const response = await bench.post('/exec', { argv: ['bash', '-c', script], background: true, ...more })
  assert.equal(response.status, 201)
  return process.parse(await response.json())
}

const get = async (id: string) => process.parse(await (await bench.ask(`/processes/${id}`)).json())

async function exited(id: string) {
  const deadline = Date.now() + WAIT_MS
  for (;;) {
    const found = await get(id)
    if (found.state === 'exited') return found
    assert.ok(Date.now() < deadline, 'still running')
    await delay(20)
  }
}

async function printed(id: string, bytes: number) {
  const deadline = Date.now() + WAIT_MS
  while ((await get(id)).stdout.end < bytes) {
    assert.ok(Date.now() < deadline, 'nothing printed')
    await delay(20)
  }
}

/** With its trailers, which `fetch` does not show. */
function rawOutput(
  id: string,
  query: string,
): Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; trailers: NodeJS.Dict<string>; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const url = `${bench.url}/v1/sandboxes/${SANDBOX}/processes/${id}/output${query}`
    const request = httpRequest(url, { headers: { authorization: `Bearer ${bench.key.text}` } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, trailers: response.trailers, body: Buffer.concat(chunks) }),
      )
    })
    request.on('error', reject)
    request.end()
  })
}

test('output: exact bytes from any offset, of one stream, with the exit in the trailers', async () => {
  const { id } = await background("printf 'a\\0b\\377c'; printf err >&2; exit 9")
  await exited(id)
  const whole = await rawOutput(id, '')
  assert.deepEqual(whole.body, Buffer.from('a\0b\xffc', 'latin1'))
  assert.equal(whole.headers['sandglass-offset'], '0')
  assert.equal(whole.headers['sandglass-process-state'], 'exited')
  assert.deepEqual([whole.trailers['sandglass-stream-end'], whole.trailers['sandglass-exit-code']], ['exit', '9'])
  for (let since = 0; since <= 5; since += 1) {
    const part = await rawOutput(id, `?since=${since}`)
    assert.deepEqual(part.body, whole.body.subarray(since))
    assert.equal(part.headers['sandglass-offset'], String(since))
  }
  assert.equal((await rawOutput(id, '?stream=stderr&since=1')).body.toString(), 'rr')
  assert.equal(await codeOf(await bench.ask(`/processes/${id}/output?since=6`)), 'invalid_request')
})

test('output of a running process: what is there, or all of it with follow', async () => {
  const { id } = await background('echo one; read -r line; echo "$line"', { stdin: true })
  await printed(id, 'one\n'.length)
  const now = await rawOutput(id, '')
  assert.deepEqual([now.body.toString(), now.headers['sandglass-process-state'], now.trailers['sandglass-stream-end']], ['one\n', 'running', 'end'])
  const following = rawOutput(id, '?follow=1&since=2')
  assert.equal((await bench.ask(`/processes/${id}/stdin`, { method: 'POST', body: 'two\n' })).status, 200)
  const all = await following
  assert.deepEqual([all.body.toString(), all.trailers['sandglass-exit-code']], ['e\ntwo\n', '0'])
})

test('output that is gone is 410, or begins later when that is allowed', async () => {
  const { id } = await background('yes | head -c 3000000')
  const { stdout } = await exited(id)
  assert.ok(stdout.start > 0)
  const gone = await bench.ask(`/processes/${id}/output`)
  assert.equal(gone.status, 410)
  assert.equal(await codeOf(gone), 'output_gone')
  const rest = await rawOutput(id, '?allow_gap=1')
  assert.equal(rest.headers['sandglass-offset'], String(stdout.start))
  assert.equal(rest.body.byteLength, stdout.end - stdout.start)
})

test('EX6: a child that holds the pipe does not hold the answer', async () => {
  const response = await bench.post('/exec', { argv: ['sh', '-c', 'sleep 30 & echo started'] })
  const body: unknown = await response.json()
  assert.ok(typeof body === 'object' && body !== null && 'output_open' in body && 'stdout' in body)
  assert.deepEqual([body.output_open, body.stdout], [true, 'started\n'])
})

test('signals: by id and by key, with what refuses them', async () => {
  const { id } = await background('trap "exit 5" TERM; echo trapped; while :; do sleep 0.05; done', { process_key: 'signalled' })
  await printed(id, 'trapped\n'.length)
  assert.equal((await bench.post(`/processes/key:signalled/signal`, { signal: 'TERM' })).status, 200)
  assert.equal((await exited(id)).exit_code, 5)
  assert.equal(await codeOf(await bench.post(`/processes/${id}/signal`, { signal: 'TERM' })), 'process_exited')
  assert.equal(await codeOf(await bench.post(`/processes/${id}/signal`, { signal: 'EXPLODE' })), 'invalid_request')
  assert.equal(await codeOf(await bench.post('/processes/key:nobody/signal', { signal: 'TERM' })), 'process_not_found')
  assert.equal(await codeOf(await bench.post(`/processes/${id}/resize`, { cols: 1, rows: 1 })), 'not_a_terminal')
})

test('input over HTTP: streamed, repeated without doubling, closed', async () => {
  const { id } = await background('cat; echo " end"', { stdin: true })
  const post = (query: string, body: string) => bench.ask(`/processes/${id}/stdin${query}`, { method: 'POST', body })
  assert.deepEqual(accepted.parse(await (await post('?offset=0', 'hello ')).json()), { accepted: 6, open: true })
  assert.deepEqual(accepted.parse(await (await post('?offset=0', 'hello world')).json()), { accepted: 11, open: true })
  assert.equal(await codeOf(await post('?offset=99', 'x')), 'stdin_offset')
  assert.equal((await post('?close=1', '!')).status, 200)
  await exited(id)
  assert.equal((await rawOutput(id, '')).body.toString(), 'hello world! end\n')
  assert.equal(await codeOf(await post('', 'late')), 'process_exited')
})

test('a client that goes does not end its command; with kill_on_disconnect it does', async () => {
  for (const kill of [false, true]) {
    const stop = new AbortController()
    const key = `gone-${kill}`
    const body = JSON.stringify({ argv: ['sleep', '300'], process_key: key, kill_on_disconnect: kill })
    const asked = bench.ask('/exec', { method: 'POST', body, headers: { 'content-type': 'application/json' }, signal: stop.signal })
    const deadline = Date.now() + WAIT_MS
    while ((await bench.ask(`/processes/key:${key}`)).status !== 200) assert.ok(Date.now() < deadline)
    stop.abort()
    await assert.rejects(asked)
    if (kill) {
      await exited(`key:${key}`)
      continue
    }
    await delay(500)
    assert.equal((await get(`key:${key}`)).state, 'running')
    await bench.post(`/processes/key:${key}/signal`, { signal: 'KILL' })
  }
})
