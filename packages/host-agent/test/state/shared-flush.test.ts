import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedFlush } from '../../src/state/shared-flush.ts'

/** Flushes that end when they are told to. */
class Disk {
  readonly begun: { place: string; end(): void; fail(): void }[] = []
  readonly flush = sharedFlush(
    (place) => new Promise<void>((resolve, reject) => this.begun.push({ place, end: resolve, fail: () => reject(new Error('the disk is gone')) })),
  )

  /** Whether it is over, once everything that can go on has gone on. */
  static async settled(promise: Promise<void>): Promise<boolean> {
    let over = false
    const note = (): void => {
      over = true
    }
    promise.then(note, note)
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
    return over
  }
}

test('a flush that had begun is not counted for who asks later, and those share one', async () => {
  const disk = new Disk()
  const first = disk.flush('a')
  const late = [disk.flush('a'), disk.flush('a')]
  assert.equal(disk.begun.length, 1)
  disk.begun[0]?.end()
  await first
  for (const one of late) assert.equal(await Disk.settled(one), false)
  assert.equal(disk.begun.length, 2)
  disk.begun[1]?.end()
  await Promise.all(late)
  const alone = disk.flush('a')
  assert.equal(disk.begun.length, 3, 'nothing is under way, so it begins at once')
  disk.begun[2]?.end()
  await alone
})

test('places do not wait for one another', async () => {
  const disk = new Disk()
  const flushes = [disk.flush('a'), disk.flush('b')]
  assert.deepEqual(
    disk.begun.map(({ place }) => place),
    ['a', 'b'],
  )
  for (const { end } of disk.begun) end()
  await Promise.all(flushes)
})

test('a failure is told to those whose flush it was, and the next one is tried', async () => {
  const disk = new Disk()
  const first = disk.flush('a')
  const late = disk.flush('a')
  disk.begun[0]?.fail()
  await assert.rejects(first, /the disk is gone/)
  assert.equal(await Disk.settled(late), false)
  disk.begun[1]?.end()
  await late
})
