import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ProcessSchema, parserOf } from '@sandglass/contract'
import { Bench } from './peers/bench.ts'
import { type ReadEvent, readEvents } from './peers/events.ts'

const process = parserOf(ProcessSchema)
let bench: Bench
before(async () => {
  bench = await Bench.withGuest()
})
after(() => bench[Symbol.asyncDispose]())

async function eventsOf(body: unknown): Promise<ReadEvent[]> {
  const response = await bench.post('/exec', body, { accept: 'text/event-stream' })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/event-stream')
  const events: ReadEvent[] = []
  for await (const event of readEvents(response)) events.push(event)
  return events
}

function bytesOf(events: ReadEvent[], stream: string): Buffer {
  let offset = 0
  const chunks = events
    .filter(({ type }) => type === stream)
    .map(({ data }) => {
      assert.equal(data['offset'], offset)
      const bytes = Buffer.from(String(data['data']), 'base64')
      offset += bytes.byteLength
      return bytes
    })
  return Buffer.concat(chunks)
}

test('events begin with start and end with exit; every byte has its offset', async () => {
  const events = await eventsOf({ argv: ['bash', '-c', 'head -c 300000 /dev/zero; printf e >&2; exit 3'] })
  assert.equal(events[0]?.type, 'start')
  assert.equal(bytesOf(events, 'stdout').byteLength, 300_000)
  assert.equal(bytesOf(events, 'stderr').toString(), 'e')
  const last = events.at(-1)
  assert.equal(last?.type, 'exit')
  assert.equal(process.parse(last?.data['process']).exit_code, 3)
})

test('a start that fails is a problem, not a stream', async () => {
  const response = await bench.post('/exec', { argv: ['/no/such'] }, { accept: 'text/event-stream' })
  assert.equal(response.status, 400)
  assert.equal(response.headers.get('content-type'), 'application/problem+json')
})

test('input is fed beside the events', async () => {
  const events = await eventsOf({ argv: ['cat'], stdin: 'x'.repeat(200_000) })
  assert.equal(bytesOf(events, 'stdout').byteLength, 200_000)
})
