/** Starts as spans of their create's trace: one for each attempt that this host took on, with the phases that it timed and how it went. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type RecordedSpan, recordSpans } from '@sandglass/testkit'
import type { Agent } from '../src/agent.ts'
import { Installation, newSandbox, specOf, testWorld } from './support/installation.ts'
import { until } from './support/until.ts'

const CREATE = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`
const recorded = recordSpans()

let installation: Installation
let agent: Agent
before(async () => {
  installation = await Installation.create()
  agent = await installation.startAgent({ ...testWorld, tracing: recorded.tracing })
})
after(() => installation[Symbol.asyncDispose]())

type Order = { readonly script?: object; readonly beside?: object; readonly vcpu?: number }

/** @returns what sends the order, for the first time or again */
async function orderOf(sandbox: string, { script = {}, beside = { traceparent: CREATE }, vcpu = 1 }: Order = {}): Promise<() => void> {
  const { plane } = installation
  const spec = await specOf(sandbox, {
    driver: 'fake',
    resources: { vcpu, memory_mb: 512, disk_gb: 2 },
    env: { SANDGLASS_FAKE_SCRIPT: JSON.stringify(script), SECRET: 'not to be told' },
  })
  const { ticket, spec: text } = plane.ticket(spec, { generation: 1, host: agent.hostId })
  return () => plane.sendStart(ticket, text, beside)
}

const startsOf = (sandbox: string): RecordedSpan[] => recorded.spans.filter(({ attributes }) => attributes['sandglass.sandbox'] === sandbox)
const phasesOf = (whole: RecordedSpan): RecordedSpan[] => recorded.spans.filter(({ start }) => start.parent === whole.traceparent)
const namesOf = (spans: readonly RecordedSpan[]): string[] => spans.map(({ name }) => name.replace('sandbox.start.', ''))

function onlyStartOf(sandbox: string): RecordedSpan {
  const [whole, ...others] = startsOf(sandbox)
  assert.ok(whole !== undefined)
  assert.deepEqual(others, [], 'one attempt is told once')
  assert.equal(whole.name, 'sandbox.start')
  return whole
}

function timesOf({ start, ended }: RecordedSpan): { readonly beganMs: number; readonly endedMs: number } {
  assert.ok(start.startedAtMs !== undefined && ended?.endedAtMs !== undefined)
  return { beganMs: start.startedAtMs, endedMs: ended.endedAtMs }
}

test('a start is a span of its create, and each phase that the report times is a child of it', async () => {
  const sandbox = newSandbox()
  const send = await orderOf(sandbox)
  const sentAtMs = Date.now()
  send()
  const { timings_ms } = await installation.plane.untilReported('ready', sandbox)
  const whole = onlyStartOf(sandbox)
  assert.equal(whole.start.kind, 'consumer')
  assert.equal(whole.start.parent, CREATE)
  assert.deepEqual(whole.attributes, { 'sandglass.sandbox': sandbox, 'sandglass.generation': 1, 'sandglass.outcome': 'ready', 'sandglass.pool': 'none' })
  assert.equal(whole.ended?.error, undefined)

  const phases = phasesOf(whole)
  const { total: _, ...timed } = timings_ms
  assert.deepEqual(namesOf(phases).sort(), Object.keys(timed).sort())
  const { beganMs, endedMs } = timesOf(whole)
  assert.ok(beganMs >= sentAtMs - 1 && endedMs <= Date.now() + 1, 'it is told in the time of the wall clock')
  for (const phase of phases) {
    const times = timesOf(phase)
    // The clocks have less than a thousandth of a millisecond to round away.
    assert.ok(times.beganMs >= beganMs - 0.001 && times.endedMs <= endedMs + 0.001, `${phase.name} is within the start`)
    assert.ok(Math.abs(times.endedMs - times.beganMs - (timed[namesOf([phase])[0] ?? ''] ?? Number.NaN)) < 0.06, `${phase.name} is as long as the report says`)
  }
})

test('an order that is delivered again, while it starts and when it runs, is the same attempt', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  const send = await orderOf(sandbox, { script: { launch_delay_ms: 50 } })
  send()
  send()
  await plane.untilReported('ready', sandbox)
  send()
  await until('a second report', () => (plane.reported('ready', sandbox).length >= 2 ? true : undefined))
  plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
  await plane.untilReported('ended', sandbox)
  send()
  await plane.untilReported('refused', sandbox)
  assert.equal(onlyStartOf(sandbox).attributes['sandglass.outcome'], 'ready')
})

test('without a trace context, or with what is none, a start is the same and a trace of its own', async () => {
  for (const beside of [
    {},
    ...['', 'x'.repeat(10_000), CREATE.toUpperCase(), `00-${'0'.repeat(32)}-${'d'.repeat(16)}-01`, 7, null, {}, [CREATE]].map((traceparent) => ({
      traceparent,
    })),
  ]) {
    const sandbox = newSandbox()
    const send = await orderOf(sandbox, { beside })
    send()
    await installation.plane.untilReported('ready', sandbox)
    assert.equal(onlyStartOf(sandbox).start.parent, undefined, `of ${JSON.stringify(beside)}`)
  }
})

test('a start that fails is told by its code and the phases that it came through, never by the words of the failure', async () => {
  const sandbox = newSandbox()
  const send = await orderOf(sandbox, { script: { launch_fails: 'words of the failure' } })
  send()
  assert.equal((await installation.plane.untilReported('ended', sandbox)).reason, 'start_failed')
  const whole = onlyStartOf(sandbox)
  assert.equal(whole.ended?.error, 'sandbox_start_failed')
  assert.equal(whole.attributes['error.type'], 'sandbox_start_failed')
  assert.equal(whole.attributes['sandglass.outcome'], 'failed')
  assert.deepEqual(namesOf(phasesOf(whole)), ['accept', 'pick', 'record', 'directories', 'bundle', 'network'])
  assert.doesNotMatch(JSON.stringify(recorded.spans), /words of the failure|not to be told/)
})

test('a start that this host refuses is told by the code of the refusal', async () => {
  const sandbox = newSandbox()
  const send = await orderOf(sandbox, { vcpu: 64 })
  send()
  const { code } = await installation.plane.untilReported('refused', sandbox)
  const whole = onlyStartOf(sandbox)
  assert.equal(whole.ended?.error, code)
  assert.equal(whole.attributes['sandglass.outcome'], 'refused')
})

test('a start that an end order overtakes is no failure', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  const send = await orderOf(sandbox, { script: { guest_silent: true } })
  send()
  await plane.barrier(newSandbox(), agent.hostId)
  plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
  await plane.untilReported('ended', sandbox)
  const whole = onlyStartOf(sandbox)
  assert.equal(whole.attributes['sandglass.outcome'], 'stopped')
  assert.equal(whole.ended?.error, undefined)
})

test('of a start that the agent’s own end cuts off nothing is told: the next agent decides what becomes of it', async () => {
  await using other = await Installation.create()
  const spans = recordSpans()
  const cut = await other.startAgent({ ...testWorld, tracing: spans.tracing })
  const sandbox = newSandbox()
  const spec = await specOf(sandbox, { driver: 'fake', env: { SANDGLASS_FAKE_SCRIPT: JSON.stringify({ guest_silent: true }) } })
  const { ticket, spec: text } = other.plane.ticket(spec, { generation: 1, host: cut.hostId })
  other.plane.sendStart(ticket, text, { traceparent: CREATE })
  await other.plane.barrier(newSandbox(), cut.hostId)
  await other.stopAgent(cut)
  const next = await other.startAgent({ ...testWorld, tracing: spans.tracing })
  other.plane.sendStart(ticket, text, { traceparent: CREATE })
  await other.plane.untilReported('ended', sandbox)
  await other.plane.barrier(newSandbox(), next.hostId)
  assert.deepEqual(spans.spans, [])
})
