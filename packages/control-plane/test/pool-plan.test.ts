/** How many members each pool should have: demand and floors in, changes out. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS, poolKeyOf } from '@sandglass/contract'
import type { HostOffer } from '../src/domain/placement/plan.ts'
import type { PoolUnits } from '../src/domain/placement/room.ts'
import { type Demand, type Floor, type PoolSnapshot, planPools } from '../src/domain/pool/plan.ts'
import { poolSpec } from '../src/domain/sandbox/runtime-spec.ts'
import { offerOf } from './host-offer.ts'

const BASE = { name: 'base', digest: 'd1' }
const SMALL = { vcpu: 0.1, memory_mb: 128, disk_gb: 1 }
const small = poolSpec({ driver: 'fake', template: BASE, resources: SMALL, networkMode: 'none' })
const SMALL_KEY = poolKeyOf(small)

const offer = (id: string, change: Partial<HostOffer> = {}): HostOffer =>
  offerOf(id, { capacity: { vcpuMilli: 8_000, memoryMb: 12_800, diskGb: 1_000 }, ...change })
const demand = (change: Partial<Demand> = {}): Demand => ({
  driver: 'fake',
  template: BASE,
  amounts: { vcpuMilli: 100, memoryMb: 128, diskGb: 1 },
  networkMode: 'none',
  arrivals: 120,
  recent: 10,
  ...change,
})
const floor = (count: number, change: Partial<Floor> = {}): Floor => ({ driver: 'fake', template: BASE, resources: SMALL, count, ...change })
const pool = (hostId: string, target: number, change: Partial<PoolUnits> = {}): PoolUnits => ({
  hostId,
  key: SMALL_KEY,
  epoch: 1,
  version: 3,
  target,
  held: target,
  spec: small,
  unit: { vcpuMilli: 0, memoryMb: 128, diskGb: 1 },
  ...change,
})
const targets = (snapshot: Partial<PoolSnapshot>): string[] =>
  planPools({ hosts: [offer('a')], pools: [], demand: [], floors: [], bounds: { ceiling: 100, memoryShare: 0.5 }, waiting: false, ...snapshot }).map(
    (change) => `${change.hostId} ${change.target}`,
  )

describe('floors', () => {
  test('are kept on every host that can run them, whatever share of the memory they hold', () => {
    assert.deepEqual(targets({ hosts: [offer('a'), offer('b')], floors: [floor(90)] }), ['a 90', 'b 90'])
  })

  test('grow as far as there is room', () => {
    assert.deepEqual(targets({ floors: [floor(90)], hosts: [offer('a', { reserved: { vcpuMilli: 0, memoryMb: 12_000, diskGb: 0 } })] }), ['a 6'])
  })

  test('are replaced after a claim, and left alone when they are there', () => {
    assert.deepEqual(targets({ floors: [floor(4)], pools: [pool('a', 3)] }), ['a 4'])
    assert.deepEqual(targets({ floors: [floor(4)], pools: [pool('a', 4)] }), [])
  })

  test('end at the most members that a pool may have', () => {
    const roomy = offer('a', { capacity: { vcpuMilli: 8_000, memoryMb: 1_000_000, diskGb: 10_000 } })
    assert.deepEqual(targets({ hosts: [roomy], floors: [floor(100_000)] }), [`a ${LIMITS.poolMembers}`])
  })

  test('are not kept for a driver that is not proved, a template that is absent, on a cordoned or lost host', () => {
    const hosts = [offer('a', { drivers: ['gvisor'] }), offer('b', { templateDigests: ['d2'] }), offer('c', { cordoned: true }), offer('d', { lost: true })]
    assert.deepEqual(targets({ hosts, floors: [floor(2)] }), [])
    assert.deepEqual(targets({ hosts, floors: [floor(2)], pools: hosts.map((host) => pool(host.id, 2)) }), ['a 0', 'b 0', 'c 0'])
  })
})

describe('demand', () => {
  test('asks for what arrives while a member is replaced, with a margin', () => {
    assert.deepEqual(targets({ demand: [demand({ arrivals: 120, recent: 10 })] }), ['a 3'])
    assert.deepEqual(targets({ demand: [demand({ arrivals: 120, recent: 50 })] }), ['a 15'])
  })

  test('is shared among hosts', () => {
    assert.deepEqual(targets({ hosts: [offer('a'), offer('b'), offer('c')], demand: [demand({ recent: 60 })] }), ['a 6', 'b 6', 'c 6'])
  })

  test('that is small is kept on few hosts, of different zones, and not on each', () => {
    const hosts = Array.from({ length: 30 }, (_, index) => offer(`h${String(index).padStart(2, '0')}`, { zone: `z${index % 3}` }))
    const changes = targets({ hosts, demand: [demand({ arrivals: 12, recent: 10 })] })
    assert.equal(changes.length, 3)
    assert.ok(changes.every((change) => change.endsWith(' 1')))
    assert.equal(new Set(changes.map((change) => Number(change.slice(1, 3)) % 3)).size, 3)
    const uneven = targets({ hosts, demand: [demand({ recent: 105 })] }).map((change) => Number(change.split(' ')[1]))
    assert.deepEqual([uneven.length, uneven.reduce((sum, target) => sum + target, 0), Math.max(...uneven)], [30, 32, 2])
  })

  test('of another key is kept on other hosts', () => {
    const hosts = Array.from({ length: 100 }, (_, index) => offer(`h${String(index).padStart(2, '0')}`))
    const hostsOf = (memory_mb: number) =>
      targets({ hosts, demand: [demand({ amounts: { vcpuMilli: 100, memoryMb: memory_mb, diskGb: 1 }, recent: 10 })] }).join()
    assert.notEqual(hostsOf(128), hostsOf(256))
  })

  test('that is too small makes no pool, and adds nothing to a floor that covers it', () => {
    assert.deepEqual(targets({ demand: [demand({ arrivals: 2, recent: 2 })] }), [])
    assert.deepEqual(targets({ demand: [demand({ arrivals: 2, recent: 2 })], floors: [floor(2)] }), ['a 2'])
  })

  test('ends at the ceiling and at the share of the memory', () => {
    assert.deepEqual(targets({ demand: [demand({ recent: 1_000 })], bounds: { ceiling: 20, memoryShare: 1 } }), ['a 20'])
    assert.deepEqual(targets({ demand: [demand({ recent: 1_000 })], bounds: { ceiling: 100, memoryShare: 0.25 } }), ['a 25'])
  })

  test('decays: a pool shrinks when much less is wanted, and to nothing when nothing is', () => {
    assert.deepEqual(targets({ demand: [demand({ recent: 50 })], pools: [pool('a', 18)] }), [])
    assert.deepEqual(targets({ demand: [demand({ recent: 50 })], pools: [pool('a', 40)] }), ['a 15'])
    assert.deepEqual(targets({ pools: [pool('a', 1)] }), ['a 0'])
  })

  test('is not followed for more keys than a host keeps', () => {
    const many = Array.from({ length: LIMITS.hostPools + 5 }, (_, index) => demand({ amounts: { vcpuMilli: 100, memoryMb: 128 + index, diskGb: 1 } }))
    const roomy = offer('a', { capacity: { vcpuMilli: 8_000, memoryMb: 1_000_000, diskGb: 10_000 } })
    assert.equal(targets({ hosts: [roomy], demand: many, bounds: { ceiling: 100, memoryShare: 1 } }).length, LIMITS.hostPools)
  })
})

test('nothing grows while a sandbox waits for room; what is not wanted shrinks', () => {
  assert.deepEqual(targets({ waiting: true, floors: [floor(4)], pools: [pool('a', 1)] }), [])
  assert.deepEqual(targets({ waiting: true, pools: [pool('a', 4)] }), ['a 0'])
})

test('what is held beyond the target is taken back without new room', () => {
  const full = offer('a', { reserved: { vcpuMilli: 0, memoryMb: 12_800, diskGb: 0 } })
  assert.deepEqual(targets({ hosts: [full], floors: [floor(4)], pools: [pool('a', 1, { held: 3 })] }), ['a 3'])
})

test('pools of an earlier epoch are left to be fenced', () => {
  assert.deepEqual(targets({ hosts: [offer('a', { epoch: 2 })], floors: [floor(4)], pools: [pool('a', 1)] }), [])
})
