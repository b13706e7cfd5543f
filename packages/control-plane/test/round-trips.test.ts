/** How often a create waits for Postgres from the request to the answer that it is ready. The number is held here, since it goes up unnoticed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordSpans } from '@sandglass/testkit'
import pg from 'pg'
import { type Rig, type RigOptions, startRig, usePostgres } from './harness.ts'
import { makeMutant } from './mutant.ts'

const postgres = usePostgres()

/** Of a create on an idle control plane; statements that travel together count once. */
const MOST = 7
const CREATES = 10

const OPTIONS: RigOptions = { timing: { sweepMs: 60_000 } }

/** Counts how often a connection had nothing under way when a statement was sent. */
async function roundTrips<T>(work: () => Promise<T>): Promise<{ result: T; count: number }> {
  const { query } = pg.Client.prototype
  const underWay = new WeakMap<pg.Client, number>()
  let count = 0
  const counted = function (this: pg.Client, ...args: unknown[]): unknown {
    const before = underWay.get(this) ?? 0
    if (before === 0) count += 1
    underWay.set(this, before + 1)
    const result: unknown = Reflect.apply(query, this, args)
    const done = () => void underWay.set(this, (underWay.get(this) ?? 1) - 1)
    if (result instanceof Promise) result.then(done, done)
    return result
  }
  Reflect.set(pg.Client.prototype, 'query', counted)
  try {
    return { result: await work(), count }
  } finally {
    Reflect.set(pg.Client.prototype, 'query', query)
  }
}

async function countOne(rig: Rig, traceparent?: string): Promise<number> {
  await rig.host({ capacity: { vcpu: 16, memory_mb: 16_384, disk_gb: 100 } })
  // At first connections are made, statements prepared, and what the join woke goes on beside; the least of some is the create alone.
  const counts: number[] = []
  for (let made = 0; made < CREATES; made += 1) {
    const { result, count } = await roundTrips(() => rig.create({}, traceparent === undefined ? {} : { traceparent }))
    assert.equal(result.status, 201)
    counts.push(count)
  }
  return Math.min(...counts)
}

test(`a create is ready after at most ${MOST} round trips to the database`, async () => {
  await using rig = await startRig(postgres.current, OPTIONS)
  assert.ok((await countOne(rig)) <= MOST)
})

test('a create in a trace takes no more', async () => {
  await using rig = await startRig(postgres.current, { ...OPTIONS, tracing: recordSpans().tracing })
  assert.ok((await countOne(rig, `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`)) <= MOST)
})

test('a create that is placed later takes more: the count sees it', async () => {
  using mutant = makeMutant([
    { file: 'services/create-sandbox.ts', replace: 'mayPlace ? context.fleet.choose', by: 'mayPlace === undefined ? context.fleet.choose' },
  ])
  await using rig = await startRig(postgres.current, { ...OPTIONS, source: mutant.source })
  assert.ok((await countOne(rig)) > MOST)
})
