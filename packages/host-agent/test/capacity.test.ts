/** What a host offers of its machine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { capacityOf } from '../src/capacity.ts'

const NOTHING = { vcpu: undefined, memoryMb: undefined, diskGb: undefined }
const NO_RESERVE = { cpus: undefined, memoryMb: undefined, diskGb: undefined }
const MACHINE = { totalMemoryMb: 10_000, freeDiskMb: 100 * 1_024 }

test('a host offers its machine without a reserve: 15 % of the memory, a tenth of the free disk, and its CPUs eight times', () => {
  assert.deepEqual(capacityOf(NOTHING, NO_RESERVE, MACHINE, 4), { vcpu: 32, memory_mb: 8_500, disk_gb: 90 })
})

test('the operator says how much is kept back', () => {
  assert.deepEqual(capacityOf(NOTHING, { cpus: 0.5, memoryMb: 4_000, diskGb: 60 }, MACHINE, 4), { vcpu: 28, memory_mb: 6_000, disk_gb: 40 })
  assert.deepEqual(capacityOf(NOTHING, { cpus: 0, memoryMb: 0, diskGb: 0 }, MACHINE, 4), { vcpu: 32, memory_mb: 10_000, disk_gb: 100 })
})

test('a reserve larger than the machine leaves nothing to offer, never less', () => {
  assert.deepEqual(capacityOf(NOTHING, { cpus: 8, memoryMb: 20_000, diskGb: 101 }, MACHINE, 4), { vcpu: 0, memory_mb: 0, disk_gb: 0 })
})

test('what is offered outright is offered exactly', () => {
  assert.deepEqual(capacityOf({ vcpu: 2, memoryMb: 9_999, diskGb: 99 }, { cpus: 1, memoryMb: 4_000, diskGb: 60 }, MACHINE, 4), {
    vcpu: 2,
    memory_mb: 9_999,
    disk_gb: 99,
  })
})
