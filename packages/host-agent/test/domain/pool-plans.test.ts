import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS, newPoolMemberId } from '@sandglass/contract'
import { bootsAllowed, decideClaim, filledPools, membersOf, type PoolView, planPool, refillsGently } from '../../src/domain/plan-pool.ts'
import { memberName } from '../../src/domain/runtime-name.ts'
import { poolAfter, type StoredPool } from '../../src/domain/stored-pool.ts'
import { spec } from './builders.ts'

const [A, B, C, D] = [0, 1, 2, 3].map((letter) => memberName(newPoolMemberId(() => new Uint8Array(16).fill(letter))))
if (A === undefined || B === undefined || C === undefined || D === undefined) throw new Error('no names')
const empty: PoolView = { target: 0, ready: [], booting: [], ending: 0, waiting: 0 }
const key = 'a'.repeat(64)
const stored: StoredPool = { key, version: 5, target: 3, spec: null }

test('the newest position holds, in whatever order positions come (pool.ver)', () => {
  assert.equal(poolAfter(stored, { key, version: 4, target: 9 }, null), stored)
  assert.equal(poolAfter(stored, { key, version: 5, target: 9 }, null), stored)
  assert.deepEqual(poolAfter(stored, { key, version: 6, target: 0 }, null), { key, version: 6, target: 0, spec: null })
})

test('what members are booted from is taken from any order that knows it, and is never lost', () => {
  const known = poolAfter(stored, { key, version: 5, target: 3 }, spec)
  assert.deepEqual(known, { ...stored, spec })
  assert.equal(poolAfter(known, { key, version: 6, target: 1 }, null).spec, spec)
})

test('a pool is filled to its target, and what is being taken down still takes up room', () => {
  assert.deepEqual(planPool({ ...empty, target: 3, ready: [A] }), { boot: 2, end: [] })
  assert.deepEqual(planPool({ ...empty, target: 3, ready: [A], ending: 1 }), { boot: 1, end: [] })
  assert.deepEqual(planPool({ ...empty, target: 1, ending: 4 }), { boot: 0, end: [] })
})

test('what is too much ends, the youngest boot first', () => {
  assert.deepEqual(planPool({ ...empty, target: 1, ready: [A, B], booting: [C, D] }), { boot: 0, end: [D, C, A] })
  assert.deepEqual(planPool({ ...empty, ready: [A] }), { boot: 0, end: [A] })
})

test('a member that boots for a claim is not the pool’s own', () => {
  assert.deepEqual(planPool({ ...empty, target: 1, booting: [A], waiting: 1 }), { boot: 1, end: [] })
  assert.deepEqual(planPool({ ...empty, booting: [A, B], waiting: 1 }), { boot: 0, end: [B] })
})

test('an acknowledgement counts every member that exists (pool.ackn)', () => {
  assert.equal(membersOf({ ...empty, ready: [A], booting: [B, C], ending: 2, waiting: 2 }), 5)
})

test('a claim picks what is ready, else waits for a boot that nobody waits for', () => {
  assert.deepEqual(decideClaim({ ...empty, ready: [A, B] }, 0), { kind: 'pick', name: A })
  assert.equal(decideClaim({ ...empty, booting: [A] }, 0).kind, 'wait')
  assert.equal(decideClaim({ ...empty, booting: [A] }, 1).kind, 'cold')
})

test('a claim starts cold only when no more members than the target take up room (cold.fit)', () => {
  assert.equal(decideClaim(empty, 0).kind, 'cold')
  assert.equal(decideClaim({ ...empty, ending: 1 }, 0).kind, 'wait')
  assert.equal(decideClaim({ ...empty, ending: 1, target: 1 }, 0).kind, 'cold')
})

test('so many members boot at once, so many may exist, and a start that waits comes first', () => {
  const room = { members: 0, inFlight: 0, startsWaiting: 0, gently: false }
  assert.equal(bootsAllowed(room), LIMITS.poolBootsInFlight)
  assert.equal(bootsAllowed({ ...room, inFlight: LIMITS.poolBootsInFlight }), 0)
  assert.equal(bootsAllowed({ ...room, members: LIMITS.poolMembers - 1 }), 1)
  assert.equal(bootsAllowed({ ...room, members: LIMITS.poolMembers }), 0)
  assert.equal(bootsAllowed({ ...room, startsWaiting: 1 }), 0)
})

test('while sandboxes are claimed, a pool with half of its members boots one at a time', () => {
  const room = { members: 2, inFlight: 0, startsWaiting: 0, gently: true }
  assert.deepEqual([bootsAllowed(room), bootsAllowed({ ...room, inFlight: 1 })], [1, 0])
  const half = { ...empty, target: 4, ready: [A, B] }
  assert.equal(refillsGently(half, true), true)
  assert.equal(refillsGently({ ...half, ready: [A] }, true), false, 'it runs dry')
  assert.equal(refillsGently(half, false), false, 'nobody is waiting for a CPU')
})

test('so many pools are filled', () => {
  const pools = Array.from({ length: LIMITS.hostPools + 2 }, (_, index) => ({ index, target: index === 0 ? 0 : 1 }))
  assert.deepEqual(
    filledPools(pools).map(({ index }) => index),
    Array.from({ length: LIMITS.hostPools }, (_, index) => index + 1),
  )
})
