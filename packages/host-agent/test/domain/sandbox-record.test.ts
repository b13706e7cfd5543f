import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import { recordEnding, recordGone, recordRunning, recordSettled, recordStart, recordTerm } from '../../src/domain/sandbox-record.ts'
import { mayForget } from '../../src/domain/tombstone.ts'
import { recordIn, spec, TERM, ticketOf } from './builders.ts'

test('a record never holds values of the environment', () => {
  assert.ok(!JSON.stringify(recordStart(ticketOf(), spec, null)).includes('a secret value'))
})

test('the first reason of an end stands', () => {
  const ending = recordEnding(recordIn('running'), { reason: 'runtime_exited', detail: 'out_of_memory' })
  assert.deepEqual(recordGone(recordEnding(ending, { reason: 'ordered', detail: null })).ended, { reason: 'runtime_exited', detail: 'out_of_memory' })
})

test('only a launching record begins to run', () => {
  for (const phase of ['running', 'ending', 'gone'] as const) {
    assert.throws(() => recordRunning(recordIn(phase), { guest_boot_id: null, evidence: {}, timings_ms: {} }))
  }
})

test('a tombstone is forgotten only when settled, with a term, and K terms later', () => {
  const gone = recordIn('gone')
  assert.equal(mayForget(gone, 1_000_000), false)
  const settled = recordSettled(gone)
  assert.equal(mayForget(settled, 1_000_000), false)
  const aged = recordTerm(settled, TERM)
  assert.equal(mayForget(aged, TERM + LIMITS.ticketTerms), false)
  assert.equal(mayForget(aged, TERM + LIMITS.ticketTerms + 1), true)
  assert.equal(recordTerm(aged, TERM + 5), aged)
})

test('what still runs is never forgotten', () => {
  for (const phase of ['launching', 'running', 'ending'] as const) assert.equal(mayForget({ ...recordIn(phase), settled: true, term: 0 }, 1_000_000), false)
})
