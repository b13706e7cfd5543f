import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { CLOSE_CODE, ProblemSchema, parserOf } from '@sandglass/contract'
import { Bench } from './peers/bench.ts'
import { Refused, type SessionClient } from './peers/session-client.ts'
import { openTerminal, type } from './peers/terminal.ts'

const problem = parserOf(ProblemSchema)
const MiB = 1024 * 1024
let bench: Bench
before(async () => {
  bench = await Bench.withGuest()
})
after(() => bench[Symbol.asyncDispose]())

const open = (query: string): Promise<SessionClient> => openTerminal(bench, query)

const plain = (client: SessionClient) => client.text().replaceAll(/\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07/g, '')
const sees = (client: SessionClient, text: string) => client.until(() => plain(client).includes(text))

test('TE2: the size is right in the first command, and follows resizes', async () => {
  const terminal = await open('?cols=101&rows=33&shell=/bin/sh')
  const { process } = await terminal.status('started')
  assert.deepEqual([process.tty, process.cols, process.rows], [true, 101, 33])
  await type(terminal, 'stty size\n')
  await sees(terminal, '33 101')
  for (let cols = 1; cols <= 300; cols += 1) terminal.send({ channel: 'resize', size: { cols, rows: 50 } })
  await type(terminal, 'sleep 0.3; stty size\n')
  await sees(terminal, '50 300')
  await type(terminal, 'exit 3\n')
  assert.equal((await terminal.status('exit')).process.exit_code, 3)
  assert.equal((await terminal.closed).code, CLOSE_CODE.normal)
})

test('a terminal without a shell named is a login shell', async () => {
  const terminal = await open('')
  const { process } = await terminal.status('started')
  assert.ok(process.argv[0] === '/bin/bash' || process.argv[0] === '/bin/sh')
  assert.equal(process.argv[1], '-l')
  assert.deepEqual([process.cols, process.rows], [80, 24])
  // What the profiles of this machine do before it reads, and for how long, is not ours.
  terminal.send({ channel: 'signal', signal: { signal: 'KILL', tree: true } })
  await terminal.status('exit')
})

test('TE2: resized while detached; what was printed meanwhile is replayed from the offset', async () => {
  const first = await open('?shell=/bin/sh')
  const { process } = await first.status('started')
  const marker = join(bench.guest?.directory ?? '', 'resized')
  await type(first, `echo one; until [ -e ${marker} ]; do sleep 0.02; done; stty size; echo tw""o\n`)
  await sees(first, 'one\r\n')
  const seen = first.received.stdout
  first.drop()
  await first.closed
  const resized = await bench.post(`/processes/${process.id}/resize`, { cols: 77, rows: 11 })
  assert.equal(resized.status, 200)
  writeFileSync(marker, '')
  const second = await open(`?id=${process.id}&since=${seen}`)
  assert.equal((await second.status('started')).stdout_offset, seen)
  await sees(second, 'two')
  assert.ok(plain(second).includes('11 77'), plain(second))
  const third = await open(`?id=${process.id}&cols=90&rows=20`)
  await third.status('started')
  await type(third, 'stty size\n')
  await sees(third, '20 90')
  await type(third, 'exit\n')
  await third.status('exit')
  await second.status('exit')
})

test('TE1: a detached terminal goes on draining', async () => {
  const marker = join(bench.guest?.directory ?? '', 'done')
  const terminal = await open('?shell=/bin/sh')
  const { process } = await terminal.status('started')
  await type(terminal, `yes | head -c 20000000; touch ${marker}\n`)
  await terminal.until(() => terminal.received.stdout > 100_000)
  terminal.drop()
  const deadline = Date.now() + 60_000
  while (!existsSync(marker)) {
    assert.ok(Date.now() < deadline, 'the program is blocked')
    await delay(50)
  }
  const again = await open(`?id=${process.id}`)
  const gap = await again.status('gap')
  assert.ok(gap.to > 10_000_000)
  await type(again, 'exit\n')
  await again.status('exit')
})

test('a flood without credit does not block Ctrl-C', async () => {
  const terminal = await open('?shell=/bin/sh')
  await terminal.status('started')
  terminal.isReading = false
  await type(terminal, 'yes\n')
  await terminal.until(() => terminal.received.stdout >= MiB)
  await type(terminal, '\x03')
  terminal.isReading = true
  terminal.credit(8 * MiB)
  await type(terminal, 'echo sti""ll here\n')
  await sees(terminal, 'still here')
  await type(terminal, 'exit\n')
  await terminal.status('exit')
})

test('what was typed before the client left arrives', async () => {
  const marker = join(bench.guest?.directory ?? '', 'last-words')
  const terminal = await open('?shell=/bin/sh')
  await terminal.status('started')
  await type(terminal, `touch ${marker}; exit\n`)
  terminal.socket.close()
  const deadline = Date.now() + 60_000
  while (!existsSync(marker)) {
    assert.ok(Date.now() < deadline, 'the last input was lost')
    await delay(20)
  }
})

const REFUSED: [query: string, code: string][] = [
  ['?cols=0&rows=24', 'invalid_request'],
  ['?cols=65535&rows=24', 'invalid_request'],
  ['?cols=80&rows=1001', 'invalid_request'],
  ['?cols=-1', 'invalid_request'],
  ['?size=1', 'invalid_request'],
  ['?since=5', 'invalid_request'],
  ['?id=praaaaaaaaaaaaaaaa&cwd=/', 'invalid_request'],
  ['?id=nothing', 'process_not_found'],
  ['?key=a%20b', 'invalid_request'],
  ['?cols=80&cols=81', 'invalid_request'],
]

for (const [query, code] of REFUSED) {
  test(`a terminal with ${query} is refused before the upgrade with ${code}`, async () => {
    await assert.rejects(bench.connect(`/terminal${query}`), (error: unknown) => {
      assert.ok(error instanceof Refused)
      const told = problem.parse(JSON.parse(error.body))
      assert.equal(told.status, error.status)
      assert.equal(told.code, code)
      return true
    })
  })
}

test('a process without a terminal is not one', async () => {
  await bench.post('/exec', { argv: ['true'], process_key: 'plain' })
  const terminal = await open('?id=key:plain')
  assert.equal((await terminal.status('error')).code, 'not_a_terminal')
  assert.equal((await terminal.closed).code, CLOSE_CODE.conflict)
})

test('a size of zero in a frame is a malformed frame', async () => {
  const terminal = await open('?shell=/bin/sh')
  await terminal.status('started')
  terminal.send({ channel: 'resize', size: { cols: 0, rows: 65_535 } })
  assert.equal((await terminal.status('error')).code, 'malformed_frame')
  assert.equal((await terminal.closed).code, CLOSE_CODE.malformed)
})

test('a terminal in a directory that is not there, or with a shell that is not there, is a typed error', async () => {
  const nowhere = await open('?cwd=/no/such')
  assert.equal((await nowhere.status('error')).code, 'cwd_not_found')
  const nothing = await open('?shell=/no/such')
  assert.equal((await nothing.status('error')).code, 'executable_not_found')
})
