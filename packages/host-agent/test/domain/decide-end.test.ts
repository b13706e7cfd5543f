import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndOrder } from '@sandglass/contract'
import { decideEnd } from '../../src/domain/decide-end.ts'
import { decideTicket } from '../../src/domain/decide-ticket.ts'
import { HOST, position, recordIn, SANDBOX, TERM, ticketOf } from './builders.ts'

const order = (fields: Partial<EndOrder> = {}): EndOrder => ({ kind: 'end', sandbox: SANDBOX, upto: 6, host: HOST, term: TERM, pool: null, ...fields })

test('an order for another host is ignored', () => {
  assert.equal(decideEnd(order({ host: 'hobbbbbbbbbbbbbbbb' }), recordIn('running'), HOST).kind, 'ignore')
})

for (const phase of ['launching', 'running', 'ending', 'gone'] as const) {
  test(`an order below the high-water mark never touches a runtime that is ${phase}`, () => {
    assert.equal(decideEnd(order({ upto: 4 }), recordIn(phase), HOST).kind, 'ignore')
  })

  for (const upto of [5, 6, 900]) {
    test(`an order up to ${upto} raises the mark of a record that is ${phase}`, () => {
      const decision = decideEnd(order({ upto }), recordIn(phase), HOST)
      assert.ok(decision.kind === 'apply')
      assert.equal(decision.record.high, upto)
      assert.equal(decision.record.term, TERM)
      assert.equal(decision.record.phase, phase === 'gone' ? 'gone' : 'ending')
      assert.equal(decision.record.settled, false)
    })
  }
}

test('an order for a sandbox that was never here leaves a tombstone that refuses the start that is still on its way', () => {
  const decision = decideEnd(order(), undefined, HOST)
  assert.ok(decision.kind === 'apply')
  assert.equal(decision.record.phase, 'gone')
  assert.equal(decision.record.runtime, null)
  const late = decideTicket(ticketOf({ generation: 5 }), decision.record, position)
  assert.ok(late.kind === 'refuse')
  assert.equal(late.code, 'stale_generation')
})

test('the same order again changes nothing and is answered again', () => {
  const first = decideEnd(order(), recordIn('gone'), HOST)
  assert.ok(first.kind === 'apply')
  assert.equal(decideEnd(order(), first.record, HOST).kind, 'repeat')
})

test('a later order of the same end keeps the tombstone for longer', () => {
  const first = decideEnd(order(), recordIn('gone'), HOST)
  assert.ok(first.kind === 'apply')
  const second = decideEnd(order({ term: TERM + 3 }), first.record, HOST)
  assert.ok(second.kind === 'apply')
  assert.equal(second.record.term, TERM + 3)
})
