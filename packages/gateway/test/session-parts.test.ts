/** The pure parts of a session: credit of output, batches of input. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError, encodeServerFrame, LIMITS } from '@sandglass/contract'
import { OutputGate } from '../src/session/output-gate.ts'
import { StdinQueue } from '../src/session/stdin-queue.ts'

function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

test('seeded: output never goes beyond its credit, and comes out whole and in order', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = randomOf(seed)
    const gate = new OutputGate()
    let credit = 0
    let pushed = ''
    let taken = ''
    const take = () => {
      for (const frame of gate.take()) {
        if (frame.channel !== 'stdout') continue
        credit -= frame.bytes.byteLength
        assert.ok(credit >= 0, `seed ${seed}`)
        taken += Buffer.from(frame.bytes).toString()
      }
    }
    for (let step = 0; step < 60; step += 1) {
      if (random(2) === 0) {
        const more = random(50)
        credit += more
        gate.addCredit(more)
      } else {
        const text = 'abcdefghijklmnopqrstuvwxyz'.slice(random(26))
        pushed += text
        gate.pushData('stdout', Buffer.from(text))
      }
      take()
    }
    gate.addCredit(pushed.length)
    credit += pushed.length
    take()
    assert.equal(taken, pushed, `seed ${seed}`)
    assert.ok(gate.isEmpty)
  }
})

test('pieces beside each other go out as one frame, of at most LIMITS.frameBytes, and as the message that is sent', () => {
  const gate = new OutputGate()
  gate.addCredit(10 * LIMITS.frameBytes)
  for (let piece = 0; piece < 5; piece += 1) gate.pushData('stdout', Buffer.alloc(LIMITS.frameBytes / 4, piece))
  gate.pushData('stderr', Buffer.from('e'))
  gate.pushData('stdout', Buffer.from('o'))
  const frames = [...gate.take()]
  assert.deepEqual(
    frames.map((frame) => (frame.channel === 'stdout' || frame.channel === 'stderr' ? [frame.channel, frame.bytes.byteLength] : frame.channel)),
    [
      ['stdout', LIMITS.frameBytes],
      ['stdout', LIMITS.frameBytes / 4],
      ['stderr', 1],
      ['stdout', 1],
    ],
  )
  for (const frame of frames) assert.deepEqual(Buffer.from(frame.message ?? []), Buffer.from(encodeServerFrame(frame)))
})

test('a status waits for the bytes before it, and needs no credit of its own', () => {
  const gate = new OutputGate()
  gate.pushStatus({ type: 'gap', stream: 'stdout', from: 0, to: 3 })
  gate.pushData('stdout', Buffer.from('xy'))
  gate.pushStatus({ type: 'heartbeat' })
  assert.deepEqual(
    [...gate.take()].map(({ channel }) => channel),
    ['status'],
  )
  gate.addCredit(2)
  assert.deepEqual(
    [...gate.take()].map(({ channel }) => channel),
    ['stdout', 'status'],
  )
})

test('seeded: input comes out in order, with its offsets, one batch at a time, within its credit', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = randomOf(seed)
    const first = random(1_000)
    const queue = new StdinQueue({ offset: first, isTerminal: false, isOpen: true })
    let sent = 0
    let taken = 0
    let inFlight = 0
    for (let step = 0; step < 80; step += 1) {
      const action = random(3)
      if (action === 0) {
        const bytes = Buffer.alloc(Math.min(random(40_000), queue.creditBytes))
        sent += bytes.byteLength
        assert.equal(queue.push(bytes), 0)
      } else if (action === 1) {
        const batch = queue.take()
        if (batch === undefined) continue
        assert.equal(inFlight, 0, `seed ${seed}`)
        assert.equal(batch.offset, first + taken, `seed ${seed}`)
        inFlight = batch.bytes.byteLength
        taken += inFlight
      } else if (inFlight > 0) {
        assert.equal(queue.accepted(), inFlight)
        inFlight = 0
      }
      assert.equal(queue.creditBytes, LIMITS.stdinCreditBytes - (sent - taken) - inFlight, `seed ${seed}`)
    }
  }
})

test('seeded: where input flows, nothing waits, and credit comes back by receipts', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = randomOf(seed)
    const queue = new StdinQueue({ offset: 7, isTerminal: true, isOpen: true })
    queue.push(Buffer.from('a'))
    assert.deepEqual(queue.take(), { bytes: Buffer.from('a'), offset: 7, close: false })
    queue.flow()
    let flowing = 1
    for (let step = 0; step < 80; step += 1) {
      if (random(2) === 0) {
        const bytes = Buffer.alloc(Math.min(1 + random(40_000), queue.creditBytes))
        queue.push(bytes)
        const batch = queue.take()
        assert.equal(batch?.bytes.byteLength ?? 0, bytes.byteLength, `seed ${seed}`)
        assert.equal(batch?.offset, undefined)
        flowing += bytes.byteLength
      } else {
        const bytes = random(flowing + 1)
        assert.equal(queue.receipted(bytes), bytes)
        flowing -= bytes
      }
      assert.equal(queue.creditBytes, LIMITS.stdinCreditBytes - flowing, `seed ${seed}`)
      assert.equal(queue.isIdle, flowing === 0, `seed ${seed}`)
      assert.equal(queue.isSent, true)
    }
  }
})

test('half-close is the last batch, and nothing may follow it', () => {
  const queue = new StdinQueue({ offset: 5, isTerminal: false, isOpen: true })
  queue.push(Buffer.from('abc'))
  queue.halfClose()
  assert.deepEqual(queue.take(), { bytes: Buffer.from('abc'), offset: 5, close: true })
  assert.equal(queue.isIdle, false)
  queue.accepted()
  assert.equal(queue.take(), undefined)
  assert.equal(queue.isIdle, true)
  assert.throws(
    () => queue.push(Buffer.from('x')),
    (error: unknown) => error instanceof CodedError && error.code === 'malformed_frame',
  )
})

test('a terminal names its offset once, because it may have other writers', () => {
  const queue = new StdinQueue({ offset: 9, isTerminal: true, isOpen: true })
  queue.push(Buffer.from('a'))
  assert.equal(queue.take()?.offset, 9)
  queue.accepted()
  queue.push(Buffer.from('b'))
  assert.equal(queue.take()?.offset, undefined)
})

test('input that the process does not read any more is dropped and credited', () => {
  const queue = new StdinQueue({ offset: 0, isTerminal: false, isOpen: true })
  queue.push(Buffer.alloc(100))
  queue.take()
  queue.push(Buffer.alloc(50))
  assert.equal(queue.discard(), 150)
  assert.equal(queue.push(Buffer.alloc(10)), 10)
  assert.equal(queue.take(), undefined)
  assert.equal(queue.isIdle, true)
})
