import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leftMsOf, parseWardenLine } from '../../src/warden/warden-line.ts'

test('a state tells the time, the deadline and what holds, asked for or not', () => {
  const state = { now: 18_000_000_000_000_000_001n, deadline: 18_000_000_000_000_000_002n, frozen: true, pid: 7 }
  assert.deepEqual(parseWardenLine('state 1 18000000000000000001 18000000000000000002 frozen 7'), { kind: 'state', ...state })
  assert.deepEqual(parseWardenLine('changed 1 18000000000000000001 18000000000000000002 open 7'), { kind: 'changed', ...state, frozen: false })
})

test('what is left is counted in whole milliseconds, and negative behind the deadline', () => {
  assert.equal(leftMsOf({ now: 1_000_000_000n, deadline: 2_500_999_999n }), 1_500)
  assert.equal(leftMsOf({ now: 2_000_000_000n, deadline: 1_000_000_000n }), -1_000)
})

test('refusals name their reason', () => {
  assert.deepEqual(parseWardenLine('refused sent_later_than_now'), { kind: 'refused', why: 'sent_later_than_now' })
  assert.deepEqual(parseWardenLine('ending'), { kind: 'ending' })
})

for (const line of [
  '',
  'state',
  'state 2 1 2 open 7',
  'state 1 -1 2 open 7',
  'state 1 1 2 thawed 7',
  'state 1 1 2 open 7 8',
  ' state 1 1 2 open 7',
  'refused',
  'refused A',
  'ENDING',
])
  test(`${JSON.stringify(line)} is no line of a warden`, () => assert.equal(parseWardenLine(line), undefined))
