import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstHostRecord, holdsEpoch, recordAsking, recordRefused, recordRegistered, recordSeq } from '../../src/domain/host-record.ts'
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

test('a refusal that tells of a later epoch voids what is held, and everything up to the told one is never resumed', () => {
  const lost = recordRefused(held, 7)
  assert.deepEqual([lost.epoch, lost.floor, holdsEpoch(lost)], [4, 8, false])
  for (const epoch of [4, 5, 7]) assert.equal(recordRegistered(lost, { epoch, seq: 60 }), undefined)
  assert.equal(recordRegistered(lost, { epoch: 8, seq: 60 })?.epoch, 8)
})

test('a refusal without an epoch, or of one that is not later, ends nothing: the database may be an old one', () => {
  for (const told of [undefined, 0, 3, 4]) assert.equal(recordRefused(held, told), held, `${told}`)
})

test('who asks for a new epoch and is told of a later one asks for the one behind that', () => {
  const asking = recordAsking(held, 'boot-two')
  for (const told of [undefined, 3, 4]) assert.equal(recordRefused(asking, told), asking, `${told}`)
  assert.equal(recordRefused(asking, 5).floor, 6)
  assert.equal(recordRefused(asking, 9).floor, 10)
})

test('the newest sequence stays when an older answer comes late', () => {
  assert.equal(recordSeq(recordSeq(held, 60), 55).last_seq, 60)
})
