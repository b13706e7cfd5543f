/** What is typed into a terminal of a real guest flows on one request, and arrives whole and once whatever breaks. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { LIMITS, ProcessSchema, parserOf } from '@sandglass/contract'
import { Bench } from './peers/bench.ts'
import { answerJson, type HostRequest, type HostScript } from './peers/host.ts'
import type { SessionClient } from './peers/session-client.ts'
import { openTerminal, type } from './peers/terminal.ts'

const process_ = parserOf(ProcessSchema)
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
let bench: Bench
beforeEach(async () => {
  bench = await Bench.withGuest()
})
afterEach(() => bench[Symbol.asyncDispose]())

const sees = (client: SessionClient, text: string) => client.until(() => client.text().includes(text))

async function shell(): Promise<{ terminal: SessionClient; id: string }> {
  const terminal = await openTerminal(bench, '?shell=/bin/sh')
  return { terminal, id: (await terminal.status('started')).process.id }
}

/** A terminal that echoes nothing and hands on every byte: the first `bytes` of what is typed are hashed. */
async function hashing(bytes: number): Promise<{ terminal: SessionClient; id: string }> {
  const made = await shell()
  await type(made.terminal, `stty raw -echo; echo rea""dy; head -c ${bytes} | sha256sum; exit\n`)
  await sees(made.terminal, 'ready')
  return made
}

const inputRequests = (): HostRequest[] => bench.host.requests.filter(({ path }) => /\/stdin(\?|$)/.test(path))
const isStream = ({ path }: HostRequest): boolean => path.includes('stream=1')

/** Does something else with the first request that begins a flow. */
function insteadOfFlow(other: (request: HostRequest, usual: HostScript) => void): void {
  const usual = bench.host.script
  bench.host.script = (request) => (isStream(request) ? other(request, usual) : usual(request))
}

async function acceptedBy(id: string): Promise<number> {
  return process_.parse(await (await bench.ask(`/processes/${id}`)).json()).stdin.accepted
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, 'waited in vain')
    await delay(2)
  }
}

test('many keys are one request', async () => {
  const { terminal } = await shell()
  for (let key = 0; key < 40; key += 1) {
    await type(terminal, `${key},`)
    await sees(terminal, `${key},`)
  }
  assert.deepEqual(inputRequests().map(isStream), [true])
  await type(terminal, '\nexit\n')
  await terminal.status('exit')
})

test('a paste of more than all credit arrives whole: receipts give it back', async () => {
  const paste = randomBytes(4 * LIMITS.stdinCreditBytes)
  const { terminal } = await hashing(paste.byteLength)
  await terminal.write(paste)
  await terminal.status('exit')
  assert.ok(terminal.text().includes(sha256(paste)), terminal.text())
  assert.deepEqual(inputRequests().map(isStream), [true])
})

test('the end of input comes behind what was typed', async () => {
  const client = await bench.connect('/exec')
  client.begin({ type: 'start', process: { argv: ['cat'], tty: { cols: 80, rows: 24 } }, credit_bytes: 100_000 })
  await client.status('started')
  const typed = () => client.text().replaceAll('\r', '')
  await type(client, 'one\n')
  // The echo of the terminal, and what the program says.
  await client.until(() => typed() === 'one\none\n')
  await type(client, 'two\n')
  client.send({ channel: 'halfClose' })
  assert.equal((await client.status('exit')).process.exit_code, 0)
  assert.equal(typed(), 'one\none\ntwo\ntwo\n')
})

test('a guest from before there were streams gets every batch in a request', async () => {
  insteadOfFlow(({ stream }) => answerJson(stream, 400, { code: 'invalid_request', detail: 'stream is not a parameter here.' }))
  const { terminal } = await shell()
  for (const word of ['one', 'two', 'three']) {
    await type(terminal, `echo [""${word}]\n`)
    await sees(terminal, `[${word}]`)
  }
  assert.deepEqual(inputRequests().map(isStream), [true, false, false, false])
  await type(terminal, 'exit\n')
  await terminal.status('exit')
  assert.equal(terminal.text().split('[one]').length, 2)
})

test('the first batch, of which nobody knows whether it arrived, arrives once', async () => {
  const { terminal, id } = await shell()
  const line = 'echo [""once]\n'
  insteadOfFlow((request, usual) => {
    // The guest takes the bytes, and its answer is lost.
    request.stream.respond = () => {
      void (async () => {
        await until(async () => (await acceptedBy(id)) === line.length)
        request.stream.destroy(new Error('cut'))
      })()
    }
    usual(request)
  })
  await type(terminal, line)
  await sees(terminal, '[once]')
  await type(terminal, 'echo [""more]; exit\n')
  await terminal.status('exit')
  assert.equal(terminal.text().split('[once]').length, 2)
  assert.ok(terminal.text().includes('[more]'))
  assert.equal(inputRequests().filter(isStream).length, 1)
})

const cuts: [name: string, cut: () => void][] = [
  ['the gateway and the host', () => bench.host.cut()],
  ['the host and the guest', () => bench.guest?.cutChannel()],
]
for (const [between, cut] of cuts) {
  test(`contact lost between ${between} while somebody types is said; from what the terminal got on, nothing is lost or doubled`, async () => {
    const text = randomBytes(600_000)
    let { terminal, id } = await hashing(text.byteLength)
    const before = await acceptedBy(id)
    let from = 0
    for (let round = 0; round < 3; round += 1) {
      await terminal.write(text.subarray(from, from + LIMITS.stdinCreditBytes / 2))
      const sentFrom = from
      await until(async () => (await acceptedBy(id)) - before > sentFrom)
      cut()
      assert.equal((await terminal.status('error')).code, 'lost_contact')
      await terminal.closed
      terminal = await openTerminal(bench, `?id=${id}`)
      from = (await terminal.status('started')).process.stdin.accepted - before
    }
    await terminal.write(text.subarray(from))
    await terminal.status('exit')
    assert.ok(terminal.text().includes(sha256(text)), terminal.text())
  })
}
