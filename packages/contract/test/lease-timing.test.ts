/** What the published times of leases must be for a fence to be safe, and for an outage to kill nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '../src/index.ts'

const { leaseMs, leaseMarginMs, leaseStopMs, fenceGraceMs, fencePollMs, fenceGapMs, renewPeriodMs, revocationMs, clockDriftPpm } = LIMITS
const drift = clockDriftPpm / 1e6
/** The longest that a clock may need to count so much, and the shortest. */
const atMostMs = (ms: number) => ms / (1 - drift)
const atLeastMs = (ms: number) => ms / (1 + drift)

test('a host that renews nothing has stopped what it runs before anybody takes its lease away', () => {
  assert.ok(atMostMs(leaseMs - leaseMarginMs) + leaseStopMs < atLeastMs(leaseMs + fenceGraceMs))
})

test('a route ends before the host that it leads to can be fenced, also where its gateway looks at it once per second only', () => {
  assert.ok(atMostMs(leaseMs + 1_000) < atLeastMs(leaseMs + fenceGraceMs))
  assert.ok(atMostMs(leaseMs + revocationMs) < atLeastMs(leaseMs + fenceGraceMs))
})

test('an outage that an observer does not notice leaves every host time to renew before it is fenced', () => {
  // Renewed just before; the renewal that hangs when the outage ends is given up, and the next one is tried.
  const quietMs = renewPeriodMs + fenceGapMs + LIMITS.hostRenewalMs + 1_000
  assert.ok(quietMs < atLeastMs(leaseMs + fenceGraceMs))
})

test('a lease outlives several renewals, and observers look several times in each', () => {
  assert.ok(leaseMs - leaseMarginMs >= 3 * renewPeriodMs)
  assert.ok(fencePollMs * 5 <= renewPeriodMs && fencePollMs * 5 <= fenceGapMs)
})
