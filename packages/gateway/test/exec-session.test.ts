import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { CLOSE_CODE, LIMITS, ProcessListSchema, ProcessSchema, parseProblem, parserOf, type StartProcess } from '@sandglass/contract'
import { Bench } from './peers/bench.ts'
import type { SessionClient } from './peers/session-client.ts'

const process_ = parserOf(ProcessSchema)
const processes = parserOf(ProcessListSchema)
const MiB = 1024 * 1024
let bench: Bench
before(async () => {
  bench = await Bench.withGuest()
})
after(() => bench[Symbol.asyncDispose]())

async function start(process: StartProcess, options: { credit?: number; kill?: boolean; writer?: string } = {}): Promise<SessionClient> {
  const client = await bench.connect('/exec')
  const writer = options.writer === undefined ? {} : { writer: options.writer }
  client.begin({ type: 'start', process, credit_bytes: options.credit ?? MiB, ...(options.kill === true ? { kill_on_disconnect: true } : {}), ...writer })
  return client
}

const bash = (script: string, more: Partial<StartProcess> = {}): StartProcess => ({ argv: ['bash', '-c', script], ...more })

async function waitForState(id: string, state: 'running' | 'exited'): Promise<void> {
  const deadline = Date.now() + 60_000
  while (process_.parse(await (await bench.ask(`/processes/${id}`)).json()).state !== state) {
    assert.ok(Date.now() < deadline, `the process is not ${state}`)
    await delay(20)
  }
}

test('started, output, exit, close 1000', async () => {
  const client = await start(bash("printf 'a\\0b\\377\\n\\n\\n b\\r\\nc'; echo e >&2; exit 7"))
  const { process } = await client.status('exit')
  assert.equal(process.exit_code, 7)
  assert.deepEqual(client.bytes('stdout'), Buffer.from('a\0b\xff\n\n\n b\r\nc', 'latin1'))
  assert.equal(client.text('stderr'), 'e\n')
  assert.deepEqual(await client.closed, { code: CLOSE_CODE.normal, reason: 'exit' })
})

test('a command that cannot be is refused as an exec request refuses it: code, words, field, limit', async () => {
  for (const command of [{ argv: ['echo', 'a\0b'] }, { argv: ['echo', 'x'.repeat(LIMITS.argvBytes)] }, { argv: ['a'], shell: 'a' }]) {
    const problem = parseProblem(await (await bench.post('/exec', command)).json())
    assert.ok(problem !== undefined)
    const { code, detail, errors, limit } = await (await start(command)).status('error')
    assert.deepEqual({ code, detail, errors, limit }, { code: problem.code, detail: problem.detail, errors: problem.errors, limit: problem.limit })
  }
})

test('a process that did not start is an error status with its code', async () => {
  const client = await start({ argv: ['/no/such'] })
  const { code, request_id } = await client.status('error')
  assert.equal(code, 'executable_not_found')
  assert.match(request_id ?? '', /^rq/)
  assert.equal((await client.closed).code, CLOSE_CODE.policy)
})

test('EX4: with input open a reader waits, and half-close is its end', async () => {
  const client = await start({ argv: ['cat'], stdin: true })
  await client.status('started')
  await client.write(Buffer.from('one\n'))
  await client.until(() => client.text() === 'one\n')
  await client.write(Buffer.from('two'))
  client.send({ channel: 'halfClose' })
  assert.equal((await client.status('exit')).process.exit_code, 0)
  assert.equal(client.text(), 'one\ntwo')
})

test('EX4: without input a reader sees its end at once, and input is refused', async () => {
  const client = await start({ argv: ['cat'] })
  assert.equal((await client.status('started')).stdin_credit_bytes, 0)
  await client.status('exit')
  const other = await start({ argv: ['sleep', '300'] })
  await other.status('started')
  other.send({ channel: 'stdin', bytes: Buffer.from('x') })
  assert.equal((await other.status('error')).code, 'malformed_frame')
  assert.equal((await other.closed).code, CLOSE_CODE.malformed)
})

test('EX13: 48 MiB of input arrive at a reader that sleeps first', async () => {
  const client = await start(bash('sleep 0.5; sha256sum', { stdin: true }))
  const chunk = Buffer.alloc(MiB, 'sandglass')
  const hash = createHash('sha256')
  for (let index = 0; index < 48; index += 1) {
    hash.update(chunk)
    await client.write(chunk)
  }
  client.send({ channel: 'halfClose' })
  await client.status('exit')
  assert.equal(client.text().split(' ')[0], hash.digest('hex'))
})

test('input of a process that closed it is dropped, and its writer is not stuck', async () => {
  const client = await start(bash('exec 0<&-; sleep 0.3; echo done', { stdin: true }))
  await client.write(Buffer.alloc(2 * LIMITS.stdinCreditBytes))
  assert.equal((await client.status('exit')).process.exit_code, 0)
})

test('output stops at the credit to the byte, and a signal does not wait behind it', async () => {
  const client = await start(bash('yes'), { credit: 1_000 })
  client.isReading = false
  await client.until(() => client.received.stdout === 1_000)
  client.send({ channel: 'signal', signal: { signal: 'KILL' } })
  const { process } = await client.status('started')
  await waitForState(process.id, 'exited')
  assert.equal(client.received.stdout, 1_000)
  client.isReading = true
  client.credit(MiB)
  assert.equal((await client.status('exit')).process.signal, 'KILL')
})

test('an exit without output needs no credit', async () => {
  const client = await start({ argv: ['true'] }, { credit: 0 })
  assert.equal((await client.status('exit')).process.exit_code, 0)
})

test('memory stays flat with readers that give no credit, and with one that reads everything', async () => {
  const idle = await Promise.all(Array.from({ length: 8 }, () => start(bash('yes'), { credit: 100 })))
  for (const client of idle) client.isReading = false
  await Promise.all(idle.map((client) => client.until(() => client.received.stdout === 100)))
  const readAll = async (): Promise<void> => {
    const busy = await start(bash('yes | head -c 100000000'))
    busy.countOnly()
    await busy.until(() => busy.statuses.some(({ type }) => type === 'exit'), 120_000)
    assert.equal(busy.received.stdout, 100_000_000)
  }
  // What a first flood takes for good, of garbage that is not collected at once, is not what this is about: a second one takes no more.
  await readAll()
  const before = process.memoryUsage().rss
  await readAll()
  const grown = process.memoryUsage().rss - before
  assert.ok(grown < 64 * MiB, `${Math.round(grown / MiB)} MiB more`)
  for (const client of idle) {
    client.send({ channel: 'signal', signal: { signal: 'KILL' } })
    client.isReading = true
    client.credit(8 * MiB)
  }
  await Promise.all(idle.map((client) => client.status('exit')))
})

test('EX11: attached again and again at random offsets, every byte comes once', async () => {
  let allowed = 500
  const first = await start(bash('for i in $(seq 2000); do printf "%07d\\n" $i; [ $((i % 100)) = 0 ] && sleep 0.05; done; true'), { credit: allowed })
  first.isReading = false
  const { process } = await first.status('started')
  let seen = Buffer.alloc(0)
  let client = first
  let cuts = 0
  for (let seed = 7; ; ) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    // No more than it was allowed, however long it takes to come back.
    await client.until(() => client.received.stdout === allowed || client.statuses.some(({ type }) => type === 'exit'))
    const isOver = client.statuses.some(({ type }) => type === 'exit')
    client.drop()
    await client.closed
    seen = Buffer.concat([seen, client.bytes('stdout')])
    if (isOver) break
    cuts += 1
    allowed = 1 + (seed % 900)
    client = await bench.connect('/exec')
    client.isReading = false
    client.begin({ type: 'attach', process_id: process.id, credit_bytes: allowed, since_stdout: seen.byteLength, since_stderr: 0 })
    assert.equal((await client.status('started')).stdout_offset, seen.byteLength)
  }
  const expected = Array.from({ length: 2_000 }, (_, index) => `${String(index + 1).padStart(7, '0')}\n`).join('')
  assert.equal(seen.toString(), expected)
  assert.ok(cuts >= 16_000 / 900, `${cuts} cuts`)
})

test('attach can type on, and what was on its way before is not doubled', async () => {
  const client = await start({ argv: ['cat'], stdin: true }, { writer: 'me' })
  const { process } = await client.status('started')
  await client.write(Buffer.from('before '))
  client.drop()
  const again = await bench.connect('/exec')
  again.begin({ type: 'attach', process_id: process.id, credit_bytes: MiB, stdin: true, writer: 'me' })
  const { process: found } = await again.status('started')
  const sent = Buffer.from('before after')
  await again.write(sent.subarray(found.stdin.accepted))
  again.send({ channel: 'halfClose' })
  await again.status('exit')
  assert.equal(again.text(), 'before after')
})

test('who writes behind somebody else is told so, and its bytes are not taken for a repeat', async () => {
  const first = await start({ argv: ['cat'], stdin: true })
  const { process } = await first.status('started')
  const attach = async (change: { writer?: string; stdin_offset?: number } = {}) => {
    const client = await bench.connect('/exec')
    client.begin({ type: 'attach', process_id: process.id, credit_bytes: MiB, stdin: true, ...change })
    await client.status('started')
    return client
  }
  const second = await attach({ writer: 'second' })
  await second.write(Buffer.from('from b\n'))
  await second.until(() => second.text() === 'from b\n')
  await first.write(Buffer.from('from a, and longer\n'))
  assert.equal((await first.status('error')).code, 'stdin_offset')
  assert.equal((await first.closed).code, CLOSE_CODE.conflict)
  second.drop()
  // It does not know that its bytes arrived, and sends them again from where it was sure.
  const again = await attach({ writer: 'second', stdin_offset: 0 })
  await again.write(Buffer.from('from b\nand on\n'))
  const other = await attach({ writer: 'other', stdin_offset: 0 })
  await other.write(Buffer.from('from b\n'))
  assert.equal((await other.status('error')).code, 'stdin_offset')
  again.send({ channel: 'halfClose' })
  await again.status('exit')
  assert.equal(again.text(), 'from b\nand on\n')
})

test('a client that goes leaves its process running; kill_on_disconnect does not', async () => {
  const leaving = await start({ argv: ['sleep', '30'] })
  const { process: left } = await leaving.status('started')
  const killing = await start({ argv: ['sleep', '30'] }, { kill: true })
  const { process: killed } = await killing.status('started')
  leaving.drop()
  killing.drop()
  await waitForState(killed.id, 'exited')
  await waitForState(left.id, 'running')
  await bench.post(`/processes/${left.id}/signal`, { signal: 'KILL' })
})

test('attaching to what is not there is 4404', async () => {
  for (const process_id of ['praaaaaaaaaaaaaaaa', 'key:none', '../../etc', 'key:a b']) {
    const client = await bench.connect('/exec')
    client.begin({ type: 'attach', process_id, credit_bytes: 0 })
    assert.equal((await client.status('error')).code, 'process_not_found')
    assert.equal((await client.closed).code, CLOSE_CODE.notFound)
  }
})

test('the same key is the same process, also in a session', async () => {
  const one = await start(bash('echo $$', { key: 'ws-once' }))
  await one.status('exit')
  const two = await start(bash('echo $$', { key: 'ws-once' }))
  await two.status('exit')
  assert.equal(one.text(), two.text())
})

test('processes are listed, and nothing of the tests is left running', async () => {
  const { items } = processes.parse(await (await bench.ask('/processes')).json())
  assert.ok(items.length > 5)
  const running = items.filter(({ state, argv }) => state === 'running' && argv[0] !== 'sleep')
  assert.deepEqual(
    running.map(({ argv }) => argv),
    [],
  )
})
