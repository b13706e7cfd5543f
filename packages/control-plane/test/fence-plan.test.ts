/** Who is fenced, as a pure function: by examples, and by random lives of a host that is watched. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FenceMemory, type LeaseSeen, longestUnchangedMs, planFences } from '../src/domain/host/fencing.ts'

const WAIT_MS = 40_000
const BOUNDS = { waitMs: WAIT_MS, gapMs: 10_000 }
const ONE: LeaseSeen = { hostId: 'hoaaaaaaaaaaaaaaaa', epoch: 3, seq: 17 }

/** An observer that looks at what it is shown; each read is answered `tookMs` after its question. */
class Observer {
  memory: FenceMemory | undefined

  look(answeredAtMs: number, leases: readonly LeaseSeen[] = [ONE], tookMs = 0) {
    const plan = planFences(this.memory, { leases, askedAtMs: answeredAtMs - tookMs, answeredAtMs }, BOUNDS)
    this.memory = plan.memory
    return plan
  }

  /** Once a second, up to and with a moment. @returns the last plan */
  watch(fromMs: number, toMs: number, leases?: readonly LeaseSeen[]) {
    for (let ms = fromMs; ms < toMs; ms += 1_000) assert.deepEqual(this.look(ms, leases).fence, [], String(ms))
    return this.look(toMs, leases)
  }
}

describe('a host', () => {
  test('is fenced when its lease was seen unchanged for all of lease and grace, not a millisecond sooner', () => {
    const observer = new Observer()
    observer.watch(5_000, 5_000 + WAIT_MS - 1)
    const { fence, nextInMs } = observer.look(5_000 + WAIT_MS)
    assert.deepEqual([fence, nextInMs], [[ONE], undefined])
  })

  test('that renews, registers or is fenced by another observer is counted from then on', () => {
    for (const change of [{ seq: 18 }, { epoch: 4 }, { epoch: 4, seq: 18 }]) {
      const observer = new Observer()
      observer.watch(0, WAIT_MS - 1_000)
      const changed = { ...ONE, ...change }
      assert.deepEqual(observer.watch(WAIT_MS, 2 * WAIT_MS - 1, [changed]).fence, [])
      assert.deepEqual(observer.look(2 * WAIT_MS, [changed]).fence, [changed])
    }
  })

  test('that nobody holds any more is forgotten, and counted from its return on', () => {
    const observer = new Observer()
    observer.watch(0, 20_000)
    assert.deepEqual(observer.look(21_000, []).fence, [])
    assert.deepEqual(observer.watch(22_000, 22_000 + WAIT_MS - 1).fence, [])
    assert.deepEqual(observer.look(22_000 + WAIT_MS).fence, [ONE])
  })

  test('is fenced by itself: others are counted apart, and the next look comes when the next one is due', () => {
    const two = { ...ONE, hostId: 'hobbbbbbbbbbbbbbbb' }
    const observer = new Observer()
    observer.look(0)
    assert.equal(observer.look(600, [ONE, two]).nextInMs, WAIT_MS - 600)
    observer.watch(1_000, WAIT_MS - 1, [ONE, two])
    const { fence, nextInMs } = observer.look(WAIT_MS, [ONE, two])
    assert.deepEqual([fence, nextInMs], [[ONE], 600])
    assert.ok(observer.memory !== undefined)
    assert.equal(longestUnchangedMs(observer.memory), WAIT_MS)
  })
})

describe('an observer', () => {
  test('fences nobody by what it saw before it was paused, before the database was away, or before it was started', () => {
    const observer = new Observer()
    assert.equal(observer.look(0).anew, true)
    observer.watch(1_000, WAIT_MS - 5_000)
    assert.equal(observer.memory?.lookedAtMs, WAIT_MS - 5_000)
    const late = observer.look(WAIT_MS + 5_001)
    assert.deepEqual([late.anew, late.fence], [true, []])
    assert.deepEqual(observer.watch(WAIT_MS + 6_001, 2 * WAIT_MS + 5_000).fence, [])
    assert.deepEqual(observer.look(2 * WAIT_MS + 5_001).fence, [ONE])
  })

  test('that was kept up for no longer than its bound goes on counting', () => {
    const observer = new Observer()
    observer.watch(0, WAIT_MS - 10_000)
    const { anew, fence } = observer.look(WAIT_MS)
    assert.deepEqual([anew, fence], [false, [ONE]])
  })

  test('counts from answers: what a slow read shows may have been renewed just before it was read', () => {
    const observer = new Observer()
    observer.look(9_000, [ONE], 9_000)
    observer.watch(10_000, WAIT_MS)
    assert.deepEqual(observer.look(9_000 + WAIT_MS - 1).fence, [])
    assert.deepEqual(observer.look(9_000 + WAIT_MS).fence, [ONE])
  })
})

/** A small generator, so that a failing life is lived again by its seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
    return ((state ^ (state >>> 13)) >>> 0) % below
  }
}

test('in 2,000 random lives nobody is fenced sooner than lease + grace behind its last renewal, and who is quiet is fenced soon after', () => {
  let fences = 0
  for (let seed = 1; seed <= 2_000; seed += 1) {
    const random = randomOf(seed)
    const observer = new Observer()
    let nowMs = 0
    let seq = 0
    let renewedAtMs = 0
    let watchedSinceMs: number | undefined
    const quietFrom = 20 + random(200)
    for (let step = 0; step < 200; step += 1) {
      const askedAtMs = nowMs + random(1_500)
      if (step < quietFrom && random(4) === 0) {
        seq += 1
        renewedAtMs = nowMs + random(askedAtMs - nowMs + 1)
      }
      // A look in 40 hangs, and one in 60 is not made at all for a while.
      const tookMs = random(40) === 0 ? random(15_000) : random(50)
      if (random(60) === 0) nowMs = askedAtMs + random(30_000)
      const from = Math.max(askedAtMs, nowMs)
      // The host may renew between the read and its answer.
      const lease = { ...ONE, seq }
      const during = step < quietFrom && random(6) === 0
      nowMs = from + tookMs
      const plan = observer.look(nowMs, [lease], tookMs)
      const renewedAfterMs = plan.memory.sightings.get(ONE.hostId)?.renewedAfterMs
      assert.ok(renewedAfterMs === undefined || renewedAfterMs <= renewedAtMs, `seed ${seed}: a renewal is thought to be later than it was`)
      if (plan.anew) watchedSinceMs = nowMs
      for (const seen of plan.fence) {
        // The statement that fences names what was seen.
        if (during) continue
        fences += 1
        assert.equal(seen.seq, seq)
        assert.ok(nowMs - renewedAtMs >= WAIT_MS, `seed ${seed}: fenced ${nowMs - renewedAtMs} ms behind its last renewal`)
      }
      const watchedMs = nowMs - Math.max(watchedSinceMs ?? nowMs, renewedAtMs)
      if (watchedMs > WAIT_MS + 20_000) assert.deepEqual(plan.fence, [lease], `seed ${seed}: not fenced after ${watchedMs} ms`)
      if (during) {
        seq += 1
        renewedAtMs = from + random(tookMs + 1)
      }
    }
  }
  assert.ok(fences > 1_000, `${fences} fences`)
})
