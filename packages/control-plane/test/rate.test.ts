/** Token buckets and the gate, with a clock of the test. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CodedError, LIMITS } from '@sandglass/contract'
import { FairGate, type GateLimits, type Place } from '../src/admission/fair-gate.ts'
import { type Policy, rateHeaders, secondsUntilOne, tokensOf } from '../src/admission/rate.ts'
import { RateLimiter } from '../src/admission/rate-limiter.ts'

const policy = (quota: number, windowSeconds: number): Policy => ({ name: 'key', quota, windowSeconds })

describe('buckets', () => {
  test('tokens come back evenly, never above the quota, and never go when time steps back', () => {
    const ten = policy(10, 5)
    assert.equal(tokensOf(undefined, ten, 0), 10)
    assert.equal(tokensOf({ tokens: 0, atMs: 1_000 }, ten, 1_000), 0)
    assert.equal(tokensOf({ tokens: 0, atMs: 1_000 }, ten, 1_500), 1)
    assert.equal(tokensOf({ tokens: 0, atMs: 1_000 }, ten, 6_000), 10)
    assert.equal(tokensOf({ tokens: 9, atMs: 1_000 }, ten, 60_000), 10)
    assert.equal(tokensOf({ tokens: 3, atMs: 1_000 }, ten, 0), 3)
  })

  test('the wait for one token is whole seconds and long enough', () => {
    assert.equal(secondsUntilOne(1, policy(10, 5)), 0)
    assert.equal(secondsUntilOne(0.5, policy(10, 5)), 1)
    assert.equal(secondsUntilOne(0, policy(1, 60)), 60)
    for (const [quota, windowSeconds] of [
      [1, 7],
      [3, 10],
      [7, 10],
      [5_000, 10],
    ] as const) {
      const of = policy(quota, windowSeconds)
      const waitMs = secondsUntilOne(0, of) * 1_000
      assert.equal(secondsUntilOne(tokensOf({ tokens: 0, atMs: 0 }, of, waitMs), of), 0, `${quota} in ${windowSeconds} s`)
    }
  })

  test('the headers name each policy, what is left and when all of it is back', () => {
    assert.deepEqual(
      rateHeaders([
        { policy: { name: 'key', quota: 10, windowSeconds: 5 }, tokens: 7.5 },
        { policy: { name: 'tenant', quota: 20, windowSeconds: 5 }, tokens: 20 },
      ]),
      { 'ratelimit-policy': '"key";q=10;w=5, "tenant";q=20;w=5', ratelimit: '"key";r=7;t=2, "tenant";r=20;t=0' },
    )
  })

  test('over any stretch a key gets its quota and what came back meanwhile; a refusal costs nothing', () => {
    let nowMs = 0
    const limiter = new RateLimiter({ keyRequests: 10, tenantRequests: 1_000, windowSeconds: 10 }, () => nowMs)
    let allowed = 0
    for (; nowMs < 30_000; nowMs += 50) if (limiter.take({ apiKeyId: 'a', tenantId: 't' }).refusal === undefined) allowed += 1
    assert.equal(allowed, 10 + 29)
    const { refusal } = limiter.take({ apiKeyId: 'a', tenantId: 't' })
    assert.ok(refusal === undefined || refusal.code === 'rate_limited')
  })

  test('the keys of one tenant share its bucket, another tenant has its own', () => {
    const limiter = new RateLimiter({ keyRequests: 3, tenantRequests: 5, windowSeconds: 10 }, () => 0)
    const take = (apiKeyId: string, tenantId: string) => limiter.take({ apiKeyId, tenantId }).refusal?.context.limit?.name ?? 'allowed'
    assert.deepEqual(
      ['a', 'a', 'a', 'a', 'b', 'b', 'b'].map((key) => take(key, 't')),
      ['allowed', 'allowed', 'allowed', 'apiRateKeyRequests', 'allowed', 'allowed', 'apiRateTenantRequests'],
    )
    assert.equal(take('c', 'u'), 'allowed')
  })
})

describe('gate', () => {
  const SMALL: GateLimits = { running: 4, runningPerGroup: 3, queued: 6, queuedPerGroup: 5, waitMs: 1_000 }

  function gateOf(limits: GateLimits = SMALL) {
    const timers = new Set<() => void>()
    const gate = new FairGate(limits, (_ms, callback) => {
      timers.add(callback)
      return () => timers.delete(callback)
    })
    const log: string[] = []
    const places = new Map<string, Place>()
    const enter = async (name: string, signal?: AbortSignal): Promise<void> => {
      try {
        places.set(name, await gate.enter(name.slice(0, 1), signal))
        log.push(name)
      } catch (error) {
        log.push(error instanceof CodedError ? `${name} ${error.code} ${error.context.limit?.name ?? ''}`.trim() : String(error))
      }
    }
    const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    const leave = async (name: string): Promise<void> => {
      places.get(name)?.leave()
      await settled()
    }
    const expire = (): void => {
      for (const callback of [...timers]) callback()
    }
    return { gate, log, enter, leave, settled, expire }
  }

  test('a group never has all places, and those who wait take turns', async () => {
    const { log, enter, leave, settled } = gateOf()
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1', 'b2']) void enter(name)
    await settled()
    assert.deepEqual(log.splice(0), ['a1', 'a2', 'a3', 'b1'])
    await leave('a1')
    await leave('a2')
    await leave('a3')
    await leave('b1')
    assert.deepEqual(log, ['a4', 'c1', 'b2', 'a5'])
  })

  test('leaving twice frees one place', async () => {
    const { gate, log, enter, leave, settled } = gateOf()
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void enter(name)
    await settled()
    await leave('a1')
    await leave('a1')
    assert.deepEqual(log, ['a1', 'a2', 'a3', 'a4'])
    assert.deepEqual(gate.counts, { running: 3, queued: 1 })
  })

  test('a full queue refuses; when all are full the longest gives up its youngest for a newcomer', async () => {
    const { log, enter, settled } = gateOf()
    for (let index = 1; index <= 9; index += 1) void enter(`a${index}`)
    await settled()
    assert.deepEqual(log.splice(0), ['a1', 'a2', 'a3', 'a9 overloaded apiRequestsQueuedPerTenant'])
    for (const name of ['b1', 'b2', 'b3', 'c1']) void enter(name)
    await settled()
    assert.deepEqual(log, ['b1', 'a8 overloaded apiRequestsQueued', 'a7 overloaded apiRequestsQueued'])
  })

  test('who waited too long is refused, and who went away is forgotten', async () => {
    const { gate, log, enter, settled, expire } = gateOf()
    const gone = new AbortController()
    for (const name of ['a1', 'a2', 'a3', 'a4']) void enter(name)
    void enter('a5', gone.signal)
    await settled()
    gone.abort()
    await settled()
    expire()
    await settled()
    assert.deepEqual(log, ['a1', 'a2', 'a3', 'a5 unavailable', 'a4 overloaded apiQueueWaitMs'])
    assert.deepEqual(gate.counts, { running: 3, queued: 0 })
  })

  test(`one tenant waits with ${LIMITS.apiRequestsQueuedPerTenant} at most, all with ${LIMITS.apiRequestsQueued}`, async () => {
    const { gate, log, enter, settled } = gateOf({
      running: LIMITS.apiRequestsRunning,
      runningPerGroup: LIMITS.apiRequestsRunningPerTenant,
      queued: LIMITS.apiRequestsQueued,
      queuedPerGroup: LIMITS.apiRequestsQueuedPerTenant,
      waitMs: LIMITS.apiQueueWaitMs,
    })
    const flood = LIMITS.apiRequestsRunningPerTenant + LIMITS.apiRequestsQueuedPerTenant
    for (let index = 0; index <= flood; index += 1) void enter(`a${index}`)
    await settled()
    assert.deepEqual(log.splice(0).slice(LIMITS.apiRequestsRunningPerTenant), [`a${flood} overloaded apiRequestsQueuedPerTenant`])
    for (const group of 'bcdefgh') for (let index = 0; index < LIMITS.apiRequestsQueuedPerTenant; index += 1) void enter(`${group}${index}`)
    await settled()
    assert.equal(gate.counts.queued, LIMITS.apiRequestsQueued)
    assert.ok(log.some((line) => line.endsWith('overloaded apiRequestsQueued')))
  })
})
