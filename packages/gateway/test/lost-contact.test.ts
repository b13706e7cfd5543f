/** EX1: whatever breaks between the client and the process, it is said, and never looks like success. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ProblemSchema, ProcessSchema, parserOf } from '@sandglass/contract'
import { Bench } from './peers/bench.ts'
import { readEvents } from './peers/events.ts'

const problem = parserOf(ProblemSchema)
const process = parserOf(ProcessSchema)
/** Goes on until the test has seen what it wants to see of a process that runs. */
const marker = (key: string): string => join(bench.guest?.directory ?? '', key)
const count = (key: string) => ({
  argv: ['bash', '-c', `for i in $(seq 11); do echo $i; sleep .02; done; until [ -e ${marker(key)} ]; do sleep .02; done; echo 12`],
  process_key: key,
})
const letGo = (key: string): void => writeFileSync(marker(key), '')
const ALL = Array.from({ length: 12 }, (_, index) => `${index + 1}\n`).join('')
let bench: Bench
before(async () => {
  bench = await Bench.withGuest()
})
after(() => bench[Symbol.asyncDispose]())

const cuts: [name: string, cut: () => void][] = [
  ['the gateway and the host', () => bench.host.cut()],
  ['the host and the guest', () => bench.guest?.cutChannel()],
]

for (const [index, [between, cut]] of cuts.entries()) {
  test(`JSON: contact lost between ${between} is lost_contact with the process id, and the process goes on`, async () => {
    const key = `json-${index}`
    const asked = bench.post('/exec', count(key))
    await started(key)
    cut()
    const response = await asked
    assert.equal(response.status, 502)
    const { code, detail, retryable } = problem.parse(await response.json())
    assert.deepEqual({ code, retryable }, { code: 'lost_contact', retryable: true })
    const { id } = process.parse(await (await bench.ask(`/processes/key:${key}`)).json())
    assert.ok(detail.includes(id), detail)
    letGo(key)
    assert.equal(await (await bench.ask(`/processes/${id}/output?follow=1`)).text(), ALL)
  })

  test(`events: contact lost between ${between} ends with an error event, and the output is all there`, async () => {
    const key = `events-${index}`
    const response = await bench.post('/exec', count(key), { accept: 'text/event-stream' })
    const events = readEvents(response)
    const types: string[] = []
    for await (const { type } of events) {
      types.push(type)
      if (types.length === 3) cut()
    }
    assert.equal(types.at(-1), 'error')
    assert.ok(!types.includes('exit'))
    letGo(key)
    assert.equal(await (await bench.ask(`/processes/key:${key}/output?follow=1`)).text(), ALL)
  })

  test(`output: contact lost between ${between} breaks the connection`, async () => {
    const key = `output-${index}`
    await bench.post('/exec', { ...count(key), background: true })
    const response = await bench.ask(`/processes/key:${key}/output?follow=1`)
    const reading = response.text()
    cut()
    await assert.rejects(reading)
    letGo(key)
    assert.equal(await (await bench.ask(`/processes/key:${key}/output?follow=1`)).text(), ALL)
  })
}

/**
 * The gateway has the head of the answer to the exec. Contact that is lost before is no loss: an exec with a key is sent again.
 * What the host sends on a session comes in order, so what is asked after the head was sent is answered after the head came.
 */
async function started(key: string): Promise<void> {
  const deadline = Date.now() + 60_000
  const isAnswered = () =>
    bench.host.requests.some(({ method, path, stream }) => method === 'POST' && path.endsWith('/exec') && stream.headersSent && !stream.closed)
  while (!isAnswered()) {
    assert.ok(Date.now() < deadline, 'the exec was not answered')
    await delay(10)
  }
  assert.equal((await bench.ask(`/processes/key:${key}`)).status, 200)
}
