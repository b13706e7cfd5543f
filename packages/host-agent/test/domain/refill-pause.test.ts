import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REFILL_HOLD_MAX_MS, REFILL_QUIET_MS, refillHeldUntilMs, type Work, workAfter } from '../../src/domain/refill-pause.ts'

/** Work that begins at these times. */
const workAt = (...times: readonly number[]): Work | undefined => times.reduce<Work | undefined>((before, nowMs) => workAfter(before, nowMs), undefined)

test('without work nothing is held, and one piece of work holds for the time of quiet', () => {
  assert.ok(refillHeldUntilMs(undefined) < 0)
  assert.equal(refillHeldUntilMs(workAt(5)), 5 + REFILL_QUIET_MS)
})

test('a burst holds until it is quiet', () => {
  const times = Array.from({ length: 20 }, (_, index) => index * (REFILL_QUIET_MS - 1))
  assert.equal(refillHeldUntilMs(workAt(...times)), (times.at(-1) ?? 0) + REFILL_QUIET_MS)
})

test('work that never pauses holds for no longer than the longest time, and holds anew only behind a pause', () => {
  const step = REFILL_QUIET_MS / 2
  const times = Array.from({ length: (3 * REFILL_HOLD_MAX_MS) / step }, (_, index) => index * step)
  for (const [index] of times.entries()) assert.ok(refillHeldUntilMs(workAt(...times.slice(0, index + 1))) <= REFILL_HOLD_MAX_MS)
  const pause = (times.at(-1) ?? 0) + REFILL_QUIET_MS
  assert.equal(refillHeldUntilMs(workAt(...times, pause)), pause + REFILL_QUIET_MS)
})

test('creates that come one after the other leave gaps in which a pool is refilled', () => {
  const gapMs = 2 * REFILL_QUIET_MS
  for (let index = 1; index < 50; index += 1) {
    const before = workAt(...Array.from({ length: index }, (_, place) => place * gapMs))
    assert.ok(refillHeldUntilMs(before) < index * gapMs)
  }
})

test('a start that takes long is no pause, and holds no longer for it', () => {
  const long = REFILL_QUIET_MS * 4
  assert.equal(refillHeldUntilMs(workAfter(workAt(0), long, true)), long + REFILL_QUIET_MS)
  assert.equal(refillHeldUntilMs(workAfter(workAt(0), REFILL_HOLD_MAX_MS * 2, true)), REFILL_HOLD_MAX_MS)
})
