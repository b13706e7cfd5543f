import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import { freshPace, paceDial } from '../../src/domain/dial-pace.ts'

function heardOf(moments: Iterable<number>): number {
  let pace = freshPace(0)
  let heard = 0
  for (const nowMs of moments) {
    const next = paceDial(pace, nowMs)
    pace = next.pace
    if (next.heard) heard += 1
  }
  return heard
}

const every = (stepMs: number, count: number): number[] => Array.from({ length: count }, (_, index) => index * stepMs)

test('a burst of dials is heard up to its limit', () => {
  assert.equal(heardOf(Array.from({ length: 10_000 }, () => 0)), LIMITS.guestDialBurst)
})

test('a guest that dials without end is heard at the pace, and never the less for its haste', () => {
  const seconds = 60
  const heard = heardOf(every(1, seconds * 1_000))
  const allowed = LIMITS.guestDialBurst + (seconds * 1_000) / LIMITS.guestDialEveryMs
  assert.ok(heard <= allowed && heard >= allowed - 2, `${heard} of ${allowed}`)
})

test('a guest that dials no faster than the pace is always heard, and rest gives back no more than the burst', () => {
  assert.equal(heardOf(every(LIMITS.guestDialEveryMs, 1_000)), 1_000)
  assert.equal(heardOf([...Array.from({ length: 100 }, () => 0), ...Array.from({ length: 100 }, () => 86_400_000)]), 2 * LIMITS.guestDialBurst)
})
