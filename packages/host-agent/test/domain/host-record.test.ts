import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstHostRecord, recordAsking, recordEpochLost, recordRegistered, recordSeq } from '../../src/domain/host-record.ts'
import { HOST } from './builders.ts'

const held = { ...firstHostRecord(HOST, 'boot-one'), epoch: 4, floor: 4, last_seq: 50 }

test('the first register expects epoch 0', () => {
  assert.equal(recordAsking(firstHostRecord(HOST, 'boot-one'), 'boot-one').floor - 1, 0)
})

test('a restart under the same boot resumes the epoch', () => {
  assert.equal(recordAsking(held, 'boot-one'), held)
})

test('a new boot gives the old epoch up before it asks', () => {
  const asking = recordAsking(held, 'boot-two')
  assert.equal(asking.floor, 5)
  assert.equal(recordRegistered(asking, { epoch: 4, seq: 51 }), undefined)
  assert.equal(recordRegistered(asking, { epoch: 5, seq: 51 })?.epoch, 5)
})

test('an agent that dies after asking asks for the same epoch again', () => {
  const asking = recordAsking(held, 'boot-two')
  assert.equal(recordAsking(asking, 'boot-two').floor, 5)
})

test('a lost epoch is never resumed', () => {
  assert.equal(recordRegistered(recordEpochLost(held), { epoch: 4, seq: 60 }), undefined)
})

test('the newest sequence stays when an older answer comes late', () => {
  assert.equal(recordSeq(recordSeq(held, 60), 55).last_seq, 60)
})
