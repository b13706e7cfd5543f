/** Statistics of samples. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BUSY_SHARE, busyBetween, cpuTimes, MachineBusy, machineAtRest } from '../measure/machine.ts'
import { median, p99, percentile } from '../measure/statistics.ts'

test('a percentile is a sample that was seen, whatever the order', () => {
  const samples = Array.from({ length: 100 }, (_, index) => 100 - index)
  assert.equal(median(samples), 50)
  assert.equal(p99(samples), 99)
  assert.equal(percentile(samples, 1), 100)
  assert.deepEqual([samples[0], samples[99]], [100, 1], 'the samples stay as they were')
})

test('of few samples, the tail is the worst one', () => {
  assert.equal(median([7]), 7)
  assert.equal(p99([3, 1, 2]), 3)
  assert.equal(median([4, 1, 3, 2]), 2)
})

test('without samples there is no statistic', () => {
  assert.throws(() => median([]), RangeError)
})

test('CPU use is what was not idle, waiting for disks included in idle', () => {
  const before = cpuTimes('cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1\n')
  const after = cpuTimes('cpu  150 0 150 750 150 0 0 0 50 0\n')
  assert.equal(busyBetween(before, after), 0.5)
  assert.equal(busyBetween(before, before), 0)
})

test('a machine is waited for until it is at rest, and one that does not come to rest in time is said to be busy', async () => {
  const { signal } = new AbortController()
  const shares = [0.9, 0.21, BUSY_SHARE, 0.9]
  await machineAtRest(signal, 60_000, async () => shares.shift() ?? 1)
  assert.deepEqual(shares, [0.9])
  await assert.rejects(
    machineAtRest(signal, 0, async () => 0.9),
    (error) => error instanceof MachineBusy && /90 %/.test(error.message),
  )
  await assert.rejects(machineAtRest(AbortSignal.abort(new Error('enough'))), /enough/)
})
