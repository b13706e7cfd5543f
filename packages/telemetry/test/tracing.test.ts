/** Against the HTTP end of a collector: what arrives is what the OTLP/HTTP JSON encoding says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TraceCollector } from '@sandglass/testkit'
import { startTracing } from '../src/index.ts'

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

/** The exporter reads the process's own environment. */
function withEndpoint(url: string): Disposable {
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = url
  return {
    [Symbol.dispose]() {
      delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT']
    },
  }
}

const role = { service: 'sandglass-test', version: '1.2.3', env: process.env }

test('a span and its child arrive in the trace of the caller', async () => {
  await using collector = await TraceCollector.start()
  using _ = withEndpoint(collector.url)
  const tracing = await startTracing(role)
  const outer = tracing.open('POST /v1/sandboxes', { kind: 'server', parent: PARENT, attributes: { 'http.request.method': 'POST' } })
  const inner = tracing.open('place', { kind: 'internal', parent: outer.traceparent, startedAtMs: 1_000.5 })
  inner.end({ endedAtMs: 1_250.25 })
  outer.end({ error: 'quota_exceeded' })
  await tracing.stop()

  assert.deepEqual(collector.paths, ['/v1/traces'])
  const [place, post, ...others] = collector.ofTrace(PARENT)
  assert.ok(place !== undefined && post !== undefined && others.length === 0)
  assert.equal(post.service, 'sandglass-test')
  assert.equal(post.parentSpanId, 'b7ad6b7169203331')
  assert.equal(post.error, 'quota_exceeded')
  assert.equal(post.attributes.get('http.request.method'), 'POST')
  assert.equal(place.parentSpanId, post.spanId)
  assert.equal(place.startNano, 1_000_500_000n)
  assert.equal(place.endNano, 1_250_250_000n)
})

test('a caller that is not sampled is not recorded, and the next hop is told so', async () => {
  await using collector = await TraceCollector.start()
  using _ = withEndpoint(collector.url)
  const tracing = await startTracing(role)
  const span = tracing.open('exec', { kind: 'server', parent: PARENT.replace(/01$/, '00') })
  assert.match(span.traceparent ?? '', /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00$/)
  span.end()
  await tracing.stop()
  assert.deepEqual(collector.spans, [])
})

test('without a collector nothing is recorded and the caller’s trace is handed on', async () => {
  const tracing = await startTracing({ ...role, env: {} })
  assert.equal(tracing.isOn, false)
  assert.equal(tracing.open('exec', { kind: 'server', parent: PARENT }).traceparent, PARENT)
  for (const wrong of [undefined, '', 'x', PARENT.toUpperCase(), `${PARENT}-x`, PARENT.replace(/^00/, 'ff'), `00-${'0'.repeat(32)}-b7ad6b7169203331-01`]) {
    assert.equal(tracing.open('exec', { kind: 'server', parent: wrong }).traceparent, undefined, `handed on: ${wrong}`)
  }
  await tracing.stop()
})

test('a collector that is away holds up nothing', async () => {
  const collector = await TraceCollector.start()
  const { url } = collector
  await collector[Symbol.asyncDispose]()
  using _ = withEndpoint(url)
  const tracing = await startTracing(role)
  for (let count = 0; count < 10_000; count += 1) tracing.open('exec', { kind: 'server' }).end()
  const bound = new Promise((resolve) => setTimeout(resolve, 20_000, 'too long').unref())
  assert.notEqual(await Promise.race([tracing.stop().catch(() => undefined), bound]), 'too long')
})
