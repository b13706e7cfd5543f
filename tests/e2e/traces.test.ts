/** One trace from the SDK to the guest of an exec, and to the phases of the host's start of a create, seen by a collector. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Sandbox, Sandglass } from '@sandglass/sdk'
import { type CollectedSpan, TraceCollector } from '@sandglass/testkit'
import { until } from './bounds.ts'
import { afterTests, ownInstallation } from './file-installation.ts'

const newTraceparent = (flags = '01'): string => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-${flags}`

const collector = await TraceCollector.start()
afterTests(() => collector[Symbol.asyncDispose]())

async function spanOf(traceparent: string, service: string, name: RegExp): Promise<CollectedSpan> {
  const found = (): CollectedSpan | undefined => collector.ofTrace(traceparent).find((span) => span.service === service && name.test(span.name))
  await until(20_000, `a span ${name} of ${service}`, () => found() !== undefined)
  return found() ?? assert.fail()
}

/** The phases of any start; which others there are says how it came up. */
const PHASES = ['accept', 'pick', 'record', 'identity', 'limits'].map((phase) => `sandbox.start.${phase}`)

test('an exec and a create are each one trace, from the client’s span to what the host does', async () => {
  const installation = await ownInstallation(() => ({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }))
  const unsampled = newTraceparent('00')
  let traceparent = unsampled
  const client = new Sandglass({ url: installation.apiUrl, apiKey: installation.operatorKey, traceparent: () => traceparent })
  await using _ = await Sandbox.create({ client })
  traceparent = newTraceparent()
  await using sandbox = await Sandbox.create({ client })
  const create = await spanOf(traceparent, 'sandglass-control-plane', /^POST \/v1\/sandboxes$/)
  assert.equal(create.parentSpanId, traceparent.split('-')[2])
  assert.equal(create.error, undefined)

  const start = await spanOf(traceparent, 'sandglass-host-agent', /^sandbox\.start$/)
  assert.equal(start.parentSpanId, create.spanId)
  assert.equal(start.error, undefined)
  assert.equal(start.attributes.get('sandglass.sandbox'), sandbox.id)
  assert.equal(start.attributes.get('sandglass.outcome'), 'ready')
  await spanOf(traceparent, 'sandglass-host-agent', /^sandbox\.start\.limits$/)
  const phases = collector.ofTrace(traceparent).filter(({ parentSpanId }) => parentSpanId === start.spanId)
  const names = phases.map(({ name }) => name)
  assert.deepEqual(
    PHASES.filter((name) => !names.includes(name)),
    [],
    `among ${names}`,
  )
  for (const phase of phases) assert.ok(phase.startNano >= start.startNano && phase.endNano <= start.endNano, `${phase.name} is within the start`)
  assert.deepEqual(collector.ofTrace(unsampled), [], 'a trace that its caller does not sample is recorded nowhere')

  traceparent = newTraceparent()
  await sandbox.exec(['true'])
  const atGateway = await spanOf(traceparent, 'sandglass-gateway', /exec/)
  const atHost = await spanOf(traceparent, 'sandglass-host-agent', /^guest POST \/v1\/exec$/)
  assert.equal(atGateway.parentSpanId, traceparent.split('-')[2])
  assert.equal(atHost.parentSpanId, atGateway.spanId)
  assert.equal(atHost.attributes.get('sandglass.sandbox'), sandbox.id)
  assert.ok(atHost.startNano >= atGateway.startNano)
})
