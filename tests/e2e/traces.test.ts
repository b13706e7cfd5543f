/** One trace from the SDK to the guest: an exec, and a create, seen by a collector. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Sandbox, Sandglass } from '@sandglass/sdk'
import { type CollectedSpan, TraceCollector } from '@sandglass/testkit'
import { until } from './bounds.ts'
import { afterTests, ownInstallation } from './file-installation.ts'

const newTraceparent = (): string => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`

const collector = await TraceCollector.start()
afterTests(() => collector[Symbol.asyncDispose]())

async function spanOf(traceparent: string, service: string, name: RegExp): Promise<CollectedSpan> {
  const found = (): CollectedSpan | undefined => collector.ofTrace(traceparent).find((span) => span.service === service && name.test(span.name))
  await until(20_000, `a span ${name} of ${service}`, () => found() !== undefined)
  return found() ?? assert.fail()
}

test('an exec and a create are each one trace, from the client’s span to the guest’s request', async () => {
  const installation = await ownInstallation(() => ({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }))
  let traceparent = newTraceparent()
  const client = new Sandglass({ url: installation.apiUrl, apiKey: installation.operatorKey, traceparent: () => traceparent })
  await using sandbox = await Sandbox.create({ client })
  const create = await spanOf(traceparent, 'sandglass-control-plane', /^POST \/v1\/sandboxes$/)
  assert.equal(create.parentSpanId, traceparent.split('-')[2])
  assert.equal(create.error, undefined)

  traceparent = newTraceparent()
  await sandbox.exec(['true'])
  const atGateway = await spanOf(traceparent, 'sandglass-gateway', /exec/)
  const atHost = await spanOf(traceparent, 'sandglass-host-agent', /^guest POST \/v1\/exec$/)
  assert.equal(atGateway.parentSpanId, traceparent.split('-')[2])
  assert.equal(atHost.parentSpanId, atGateway.spanId)
  assert.equal(atHost.attributes.get('sandglass.sandbox'), sandbox.id)
  assert.ok(atHost.startNano >= atGateway.startNano)
})
