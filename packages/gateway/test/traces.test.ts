/** A client's trace goes through the gateway to the host, and each request and each WebSocket is one span of it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type RecordedSpan, recordSpans } from '@sandglass/testkit'
import { Bench } from './peers/bench.ts'
import { answerJson } from './peers/host.ts'

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const recorded = recordSpans()
let bench: Bench
before(async () => {
  bench = await Bench.scripted(({ stream }) => answerJson(stream, 200, { items: [] }), { tracing: recorded.tracing })
})
after(() => bench[Symbol.asyncDispose]())

async function ended(route: string): Promise<RecordedSpan> {
  for (let look = 0; look < 3_000; look += 1) {
    const span = recorded.spans.findLast(({ name }) => name.endsWith(route))
    if (span?.ended !== undefined) return span
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`no span of ${route} ended: ${recorded.spans.map(({ name }) => name)}`)
}

test('a request is a span of the client’s trace, and the host is told of it', async () => {
  await bench.ask('/processes', { headers: { traceparent: PARENT } })
  const span = await ended('/processes')
  assert.equal(span.name, 'GET /v1/sandboxes/:id/processes')
  assert.equal(span.start.parent, PARENT)
  assert.equal(bench.host.requests.at(-1)?.headers['traceparent'], span.traceparent)
  assert.notEqual(span.traceparent, PARENT)
})

test('a refusal is told by its status, and only a failure of ours is an error', async () => {
  await bench.ask('/processes', { key: null })
  const span = await ended('/processes')
  assert.equal(span.attributes['http.response.status_code'], 401)
  assert.deepEqual(span.ended, {})
})

test('what machines ask every second is in no trace', async () => {
  const before = recorded.spans.length
  await fetch(`${bench.url}/healthz`)
  assert.equal(recorded.spans.length, before)
})

test('a WebSocket is one span from the upgrade to its close', async () => {
  const client = await bench.connect('/exec', { headers: { traceparent: PARENT } })
  const open = recorded.spans.findLast(({ name }) => name.includes('/exec'))
  assert.equal(open?.start.parent, PARENT)
  assert.equal(open?.ended, undefined)
  client.socket.terminate()
  await ended('/exec')
})
