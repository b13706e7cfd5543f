import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError, HostOrderSchema, parserOf } from '../src/index.ts'

const order = parserOf(HostOrderSchema)
const start = { type: 'start', ticket: { payload: '{}', key_id: 'k1', signature: 'c2ln' }, spec: '{}' }

test('a trace context beside a start is a hint: with any, or none, the order is one', () => {
  assert.deepEqual(order.parse(start), start)
  for (const traceparent of [`00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`, '', 'x'.repeat(100_000), 7, true, null, {}, ['00']]) {
    const told = { ...start, traceparent }
    assert.deepEqual(order.parse(told), told, `refused with ${JSON.stringify(traceparent).slice(0, 80)}`)
  }
})

test('a start takes no other field, and no other order has a trace context', () => {
  const refused = (line: object): void => assert.throws(() => order.parse(line), CodedError)
  refused({ ...start, tracestate: 'a=b' })
  refused({ type: 'end', order: start.ticket, traceparent: '' })
  refused({ type: 'heartbeat', traceparent: '' })
})
