/** Properties of the placement plan, over generated fleets and queues. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { fitsIn, minus, plus } from '../src/domain/amounts.ts'
import { type HostOffer, neverFits, type PendingSandbox, planPlacement } from '../src/domain/placement/plan.ts'
import type { PoolUnits } from '../src/domain/placement/room.ts'
import { poolSpec } from '../src/domain/sandbox/runtime-spec.ts'
import { offerOf } from './host-offer.ts'

const KEYS = ['k0', 'k1']
const plan = (queue: readonly PendingSandbox[], fleet: readonly HostOffer[], pools: readonly PoolUnits[] = []) => planPlacement(queue, fleet, pools)

const amounts = (max: number) =>
  fc.record({ vcpuMilli: fc.integer({ min: 1, max }), memoryMb: fc.integer({ min: 1, max }), diskGb: fc.integer({ min: 1, max }) })
const driver = fc.constantFrom('gvisor', 'fake')
const digest = fc.constantFrom('d1', 'd2')
const region = fc.constantFrom('l1', 'l2')

const host = (id: string): fc.Arbitrary<HostOffer> =>
  fc
    .record({
      capacity: amounts(40),
      used: fc.double({ min: 0, max: 1, noNaN: true }),
      drivers: fc.subarray(['gvisor', 'fake']),
      digests: fc.subarray(['d1', 'd2']),
      region,
      cordoned: fc.boolean(),
      lost: fc.boolean(),
    })
    .map(({ capacity, used, drivers, digests, ...rest }) => ({
      ...rest,
      id,
      name: id,
      epoch: 1,
      drivers,
      templateDigests: digests,
      capacity,
      reserved: {
        vcpuMilli: Math.floor(capacity.vcpuMilli * used),
        memoryMb: Math.floor(capacity.memoryMb * used),
        diskGb: Math.floor(capacity.diskGb * used),
      },
    }))

const hosts = fc.integer({ min: 0, max: 6 }).chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => host(`h${index}`))))
const pending: fc.Arbitrary<PendingSandbox[]> = fc
  .array(fc.record({ need: amounts(20), driver, templateDigest: digest, region, avoidHostId: fc.constantFrom(null, 'h0', 'h1') }), { maxLength: 20 })
  .map((list) => list.map((one, index) => ({ ...one, id: `s${index}`, generation: index, unschedulableReason: null, poolKey: KEYS[index % 3] ?? null })))

describe('placement', () => {
  test('never promises more than a host offers', () => {
    fc.assert(
      fc.property(pending, hosts, (queue, fleet) => {
        for (const offer of fleet) {
          const taken = placedOn(queue, fleet, offer.id).reduce((sum, one) => plus(sum, one.need), offer.reserved)
          assert.ok(fitsIn(taken, offer.capacity) || placedOn(queue, fleet, offer.id).length === 0)
        }
      }),
    )
  })

  test('chooses only hosts of the region that proved the driver, have the template, and take work', () => {
    fc.assert(
      fc.property(pending, hosts, (queue, fleet) => {
        for (const offer of fleet) {
          for (const one of placedOn(queue, fleet, offer.id)) {
            assert.ok(!offer.cordoned && !offer.lost && offer.region === one.region)
            assert.ok(offer.drivers.includes(one.driver) && offer.templateDigests.includes(one.templateDigest))
          }
        }
      }),
    )
  })

  test('answers for each sandbox once, in order, at the generation that it read', () => {
    fc.assert(
      fc.property(pending, hosts, (queue, fleet) => {
        const { choices } = plan(queue, fleet)
        assert.deepEqual(
          choices.map(({ sandboxId, generation }) => ({ sandboxId, generation })),
          queue.map(({ id, generation }) => ({ sandboxId: id, generation })),
        )
      }),
    )
  })

  test('lets the first in the queue wait only when no host could take it', () => {
    fc.assert(
      fc.property(pending, hosts, (queue, fleet) => {
        const [first] = queue
        const [answer] = plan(queue, fleet).choices
        if (first === undefined || answer?.kind !== 'wait') return
        assert.ok(!fleet.some((offer) => suits(first, offer)))
        assert.match(answer.reason, /^(no_host|no_capacity|no_suitable_host): /)
      }),
    )
  })

  test('does not depend on the order in which hosts were read', () => {
    fc.assert(fc.property(pending, hosts, (queue, fleet) => assert.deepEqual(plan(queue, fleet).choices, plan(queue, fleet.toReversed()).choices)))
  })

  test('returns to the host of a failed start only when no other suits', () => {
    fc.assert(
      fc.property(pending, hosts, (queue, fleet) => {
        const [first] = queue
        const [answer] = plan(queue, fleet).choices
        if (first === undefined || answer?.kind !== 'place' || answer.hostId !== first.avoidHostId) return
        assert.equal(fleet.filter((offer) => suits(first, offer)).length, 1)
      }),
    )
  })
})

function placedOn(queue: readonly PendingSandbox[], fleet: readonly HostOffer[], hostId: string): PendingSandbox[] {
  const ids = new Set(plan(queue, fleet).choices.flatMap((answer) => (answer.kind === 'place' && answer.hostId === hostId ? [answer.sandboxId] : [])))
  return queue.filter((one) => ids.has(one.id))
}

const suits = (one: PendingSandbox, offer: HostOffer): boolean =>
  !offer.cordoned &&
  !offer.lost &&
  offer.region === one.region &&
  offer.drivers.includes(one.driver) &&
  offer.templateDigests.includes(one.templateDigest) &&
  fitsIn(one.need, minus(offer.capacity, offer.reserved))

const SIZE = { vcpuMilli: 500, memoryMb: 512, diskGb: 2 }
const spec = poolSpec({
  driver: 'fake',
  template: { name: 'base', digest: 'd1' },
  resources: { vcpu: 0.5, memory_mb: 512, disk_gb: 2 },
  networkMode: 'none',
})
const offer = (id: string, change: Partial<HostOffer> = {}): HostOffer =>
  offerOf(id, { capacity: { vcpuMilli: 4_000, memoryMb: 2_048, diskGb: 100 }, ...change })
const waiting = (id: string, change: Partial<PendingSandbox> = {}): PendingSandbox => ({
  id,
  generation: 0,
  region: 'l1',
  driver: 'fake',
  templateDigest: 'd1',
  need: SIZE,
  avoidHostId: null,
  unschedulableReason: null,
  poolKey: 'k0',
  ...change,
})
/** Of members of the default size, all of them held. */
const units = (hostId: string, key: string, target: number, change: Partial<PoolUnits> = {}): PoolUnits => ({
  hostId,
  key,
  epoch: 1,
  version: 7,
  target,
  held: target,
  spec,
  unit: { ...SIZE, vcpuMilli: 0 },
  ...change,
})
const placed = (answer: ReturnType<typeof plan>) =>
  answer.choices.map((choice) => (choice.kind === 'place' ? `${choice.sandboxId} ${choice.hostId} ${choice.poolKey ?? 'cold'}` : `${choice.sandboxId} waits`))

describe('placement with pools', () => {
  test('prefers the host that has a unit of the key, and takes each unit once', () => {
    const fleet = [offer('a'), offer('b', { reserved: { vcpuMilli: 0, memoryMb: 1_024, diskGb: 4 } })]
    const answer = plan([waiting('s1'), waiting('s2'), waiting('s3')], fleet, [units('b', 'k0', 2)])
    assert.deepEqual(placed(answer), ['s1 b k0', 's2 b k0', 's3 b cold'])
  })

  test('takes a unit on a host that has no other room, and none without the vCPU for it', () => {
    const full = { vcpuMilli: 3_600, memoryMb: 2_048, diskGb: 8 }
    const answer = plan([waiting('s1'), waiting('s2')], [offer('a', { reserved: { ...full, vcpuMilli: 3_500 } })], [units('a', 'k0', 4)])
    assert.deepEqual(placed(answer), ['s1 a k0', 's2 waits'])
    assert.deepEqual(answer.shrinks, [])
  })

  test('takes no unit of another epoch, of another key, of a cordoned host', () => {
    assert.deepEqual(placed(plan([waiting('s1')], [offer('a')], [units('a', 'k0', 1, { epoch: 2 }), units('a', 'k1', 1)])), ['s1 a cold'])
    assert.deepEqual(placed(plan([waiting('s1')], [offer('a', { cordoned: true })], [units('a', 'k0', 1)])), ['s1 waits'])
  })

  test('makes pools of other keys smaller for what would fit without them, as far as it takes, and says so', () => {
    const fleet = [offer('a', { reserved: { vcpuMilli: 0, memoryMb: 2_048, diskGb: 8 } })]
    const answer = plan([waiting('s1', { need: { ...SIZE, memoryMb: 1_000 } })], fleet, [units('a', 'k1', 3), units('a', 'k2', 1)])
    const [choice] = answer.choices
    assert.match(choice?.kind === 'wait' ? choice.reason : '', /^pool_shrinking: needs 0\.5 vCPU, 1,000 MB of memory .*idle pool members of a hold the room/)
    assert.deepEqual(
      answer.shrinks.map(({ pool, target }) => [pool.key, target]),
      [['k1', 1]],
    )
  })

  test('waits for what is on its way to be freed, and asks for no more', () => {
    const fleet = [offer('a', { reserved: { vcpuMilli: 0, memoryMb: 2_048, diskGb: 8 } })]
    const answer = plan([waiting('s1', { need: { ...SIZE, memoryMb: 1_000 } })], fleet, [units('a', 'k1', 2, { held: 4 })])
    assert.deepEqual(placed(answer), ['s1 waits'])
    assert.deepEqual(answer.shrinks, [])
  })

  test('counts what its own pool has given up, and takes the rest of others', () => {
    const fleet = [offer('a', { reserved: { vcpuMilli: 0, memoryMb: 2_048, diskGb: 8 } })]
    const answer = plan([waiting('s1', { need: { ...SIZE, memoryMb: 2_048 }, poolKey: 'k9' })], fleet, [units('a', 'k9', 0, { held: 1 }), units('a', 'k1', 3)])
    assert.deepEqual(
      answer.shrinks.map(({ pool, target }) => [pool.key, target]),
      [['k1', 0]],
    )
  })

  test('promises room of pools once', () => {
    const fleet = [offer('a', { reserved: { vcpuMilli: 0, memoryMb: 2_048, diskGb: 8 } })]
    const big = { ...SIZE, memoryMb: 1_024 }
    const answer = plan([waiting('s1', { need: big }), waiting('s2', { need: big }), waiting('s3', { need: big })], fleet, [units('a', 'k1', 4)])
    assert.deepEqual(
      answer.shrinks.map(({ target }) => target),
      [0],
    )
    const reasons = answer.choices.map((choice) => (choice.kind === 'wait' ? choice.reason.split(':')[0] : ''))
    assert.deepEqual(reasons, ['pool_shrinking', 'pool_shrinking', 'no_capacity'])
  })
})

describe('what can never fit', () => {
  const fleet = [
    { name: 'host-1', capacity: { vcpuMilli: 8_000, memoryMb: 23_552, diskGb: 100 } },
    { name: 'host-2', capacity: { vcpuMilli: 64_000, memoryMb: 4_096, diskGb: 10 } },
  ]
  test('names the resource, what was asked and the largest host', () => {
    assert.equal(neverFits({ vcpu: 8, memory_mb: 999_999, disk_gb: 2 }, fleet), 'no host can ever fit 999,999 MB of memory (largest: 23,552 MB on host-1).')
    assert.equal(neverFits({ vcpu: 64.5, memory_mb: 512, disk_gb: 2 }, fleet), 'no host can ever fit 64.5 vCPU (largest: 64 vCPU on host-2).')
    assert.equal(neverFits({ vcpu: 1, memory_mb: 512, disk_gb: 101 }, fleet), 'no host can ever fit 101 GB of disk (largest: 100 GB on host-1).')
  })
  test('is also what fits by each resource and on no one host', () => {
    assert.match(neverFits({ vcpu: 32, memory_mb: 8_192, disk_gb: 2 }, fleet) ?? '', /together/)
  })
  test('is not told of what fits an empty host, nor before any host is known', () => {
    assert.equal(neverFits({ vcpu: 1, memory_mb: 512, disk_gb: 2 }, fleet), undefined)
    assert.equal(neverFits({ vcpu: 1, memory_mb: 999_999, disk_gb: 2 }, []), undefined)
  })
})
