/** Statistics of samples. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { busyBetween, cpuTimes } from '../measure/machine.ts'
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
