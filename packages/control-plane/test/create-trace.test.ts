/** The trace of a create goes on at the host: every start order that is made for it carries its trace context, whoever makes the order and when. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordSpans, type SeenStart, type SimulatedHost, until } from '@sandglass/testkit'
import { startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
/** An order is written once, however long the host takes. */
const ONCE = { timing: { resendMs: 600_000 } }

const traceOf = (digit: string, flags = '01'): string => `00-${digit.repeat(32)}-${digit.repeat(16)}-${flags}`

/** Where the start order of a generation does not carry it: the whole line. */
const carried = ({ order }: SeenStart): unknown => ('traceparent' in order ? order.traceparent : 'none')
const startsOf = (host: SimulatedHost, sandbox: string): SeenStart[] => host.starts.filter(({ ticket }) => ticket.sandbox === sandbox)

test('a start order names the span of the create that it is for', async () => {
  const { tracing, spans } = recordSpans()
  await using rig = await startRig(postgres.current, { ...ONCE, tracing })
  const host = await rig.host()
  const { body } = await rig.create({}, { traceparent: traceOf('c') })
  const span = spans.findLast(({ name }) => name === 'POST /v1/sandboxes')
  assert.equal(span?.start.parent, traceOf('c'))
  assert.deepEqual(startsOf(host, body.id).map(carried), [span?.traceparent])
})

test('where nothing is recorded the client’s own trace goes on, unsampled too; what is none is left out and fails nothing', async () => {
  await using rig = await startRig(postgres.current, ONCE)
  const host = await rig.host()
  const cases = [
    [traceOf('c'), traceOf('c')],
    [traceOf('c', '00'), traceOf('c', '00')],
    [undefined, 'none'],
    ['00-not-a-trace-01', 'none'],
    [traceOf('0'), 'none'],
    [`${traceOf('c')}'; DROP TABLE sandboxes; --`, 'none'],
  ] as const
  for (const [given, expected] of cases) {
    const { status, body } = await rig.create({}, given === undefined ? {} : { traceparent: given })
    assert.equal(status, 201)
    assert.deepEqual(startsOf(host, body.id).map(carried), [expected], `of ${given}`)
  }
})

test('a create that waits for room keeps its trace, and so does an order that is written again', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host({ capacity: { vcpu: 1, memory_mb: 512, disk_gb: 2 } })
  const first = await rig.create({}, { traceparent: traceOf('c') })
  const second = await rig.create({}, { wait: 0, traceparent: traceOf('d') })
  assert.deepEqual(startsOf(host, second.body.id), [])
  host.script('hang')
  await rig.remove(first.body.id)
  await until('the order to be written twice', () => startsOf(host, second.body.id).length >= 2)
  const seen = startsOf(host, second.body.id)
  assert.deepEqual(new Set(seen.map(carried)), new Set([traceOf('d')]))
  assert.deepEqual(new Set(seen.map(({ ticket }) => ticket.generation)), new Set([1]))
})

test('each attempt of a create is in its trace, under its own generation', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host({ starts: ['fail', 'ready'] })
  const { status, body } = await rig.create({}, { traceparent: traceOf('c') })
  assert.equal(status, 201)
  const seen = startsOf(host, body.id)
  assert.deepEqual(new Set(seen.map(carried)), new Set([traceOf('c')]))
  assert.equal(new Set(seen.map(({ ticket }) => ticket.generation)).size, 2)
})

test('a repeat of a create leaves the sandbox in the trace of the first', async () => {
  await using rig = await startRig(postgres.current)
  const first = await rig.create({}, { wait: 0, idempotencyKey: 'traced', traceparent: traceOf('c') })
  assert.equal(first.status, 202)
  const repeat = await rig.create({}, { wait: 0, idempotencyKey: 'traced', traceparent: traceOf('d') })
  assert.equal(repeat.body.id, first.body.id)
  const host = await rig.host()
  await until('the start', () => startsOf(host, first.body.id).length > 0)
  assert.deepEqual(new Set(startsOf(host, first.body.id).map(carried)), new Set([traceOf('c')]))
})

test('a start is in a trace of its own, and a restart by policy in none', async () => {
  await using rig = await startRig(postgres.current)
  const host = await rig.host()
  const { body } = await rig.create({ restart_policy: 'always' }, { traceparent: traceOf('c') })
  await rig.run('stop', body.id)
  const started = await rig.run('start', body.id, { traceparent: traceOf('d') })
  await host.ended(body.id, started.body.generation, 'runtime_exited')
  await until('the restart', () => startsOf(host, body.id).length === 3)
  assert.deepEqual(startsOf(host, body.id).map(carried), [traceOf('c'), traceOf('d'), 'none'])
})
