/** The reader of the closing counts: a run that was cut off, or in which nothing ran, must not look like one that passed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closingCounts, outcomes } from './unittest-report.ts'

const NONE = { failures: 0, errors: 0, skipped: 0, expectedFailures: 0, unexpectedSuccesses: 0 }

test('counts of passes, failures, errors and skips', () => {
  assert.deepEqual(closingCounts('x ... ok\n\n----\nRan 3 tests in 0.1s\n\nOK\n'), { ...NONE, ran: 3 })
  assert.deepEqual(closingCounts('\nRan 1 test in 0.1s\n\nOK (skipped=1)\n'), { ...NONE, ran: 1, skipped: 1 })
  assert.deepEqual(closingCounts('\nRan 9 tests in 2s\n\nFAILED (failures=1, errors=2, skipped=3, expected failures=4, unexpected successes=5)\n'), {
    ran: 9,
    failures: 1,
    errors: 2,
    skipped: 3,
    expectedFailures: 4,
    unexpectedSuccesses: 5,
  })
})

test('output without its end is an error', () => {
  assert.throws(() => closingCounts('test_a (t.T) ... ok\n'), /No closing counts/)
  assert.throws(() => closingCounts('\nRan 3 tests in 0.1s\n'), /No closing counts/)
  assert.throws(() => closingCounts(''), /No closing counts/)
})

test('each test with how it ended', () => {
  const output = "test_b (t.T.test_b)\nWhat it shows ... ok\ntest_a (t.T.test_a) ... skipped 'no C'\ntest_c (t.T.test_c) ... FAIL\nother line\n"
  assert.deepEqual(outcomes(output), ["test_a (t.T.test_a) skipped 'no C'", 'test_b (t.T.test_b) ok', 'test_c (t.T.test_c) FAIL'])
})
