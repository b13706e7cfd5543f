/** Properties of the placement plan, over generated fleets and queues. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { fitsIn, minus, plus } from '../src/domain/amounts.ts'
import { type HostOffer, type PendingSandbox, planPlacement } from '../src/domain/placement/plan.ts'
import { neverFits } from '../src/domain/placement/refusal.ts'
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
      zone: null,
      hostClass: null,
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
  .map((list) =>
    list.map((one, index) => ({
      ...one,
      id: `s${index}`,
      tenantId: `t${index % 2}`,
      generation: index,
      unschedulableReason: null,
      poolKey: KEYS[index % 3] ?? null,
      recovers: false,
      isAged: false,
    })),
  )

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
  tenantId: 't0',
  generation: 0,
  region: 'l1',
  driver: 'fake',
  templateDigest: 'd1',
  need: SIZE,
  avoidHostId: null,
  unschedulableReason: null,
  poolKey: 'k0',
  recovers: false,
  isAged: false,
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

const roomy = { vcpuMilli: 64_000, memoryMb: 65_536, diskGb: 1_000 }
const places = (answer: ReturnType<typeof plan>) => answer.choices.map((choice) => (choice.kind === 'place' ? choice.hostId : choice.reason))

describe('the score of hosts', () => {
  test('packs: the host with the least room left is taken first', () => {
    const fleet = [offer('a', { capacity: roomy }), offer('b', { capacity: roomy, reserved: { vcpuMilli: 32_000, memoryMb: 32_768, diskGb: 100 } })]
    assert.deepEqual(places(plan([waiting('s1')], fleet)), ['b'])
  })

  test('spreads a tenant over zones, then over hosts, where packing makes no great difference', () => {
    const fleet = ['a', 'b', 'c', 'd'].map((id, index) => offer(id, { capacity: roomy, zone: index < 2 ? 'z1' : 'z2' }))
    const spread = new Map([['t0', new Map<string, number>()]])
    const queue = [1, 2, 3, 4].map((index) => waiting(`s${index}`))
    assert.deepEqual(places(planPlacement(queue, fleet, [], { spread })), ['a', 'c', 'b', 'd'])
    const held = new Map([['t0', new Map([['a', 5]])]])
    assert.deepEqual(places(planPlacement(queue.slice(0, 1), fleet, [], { spread: held })), ['c'])
  })

  test('spreads each tenant by itself', () => {
    const fleet = ['a', 'b'].map((id) => offer(id, { capacity: roomy, zone: id }))
    const spread = new Map(['t0', 't1'].map((tenantId) => [tenantId, new Map<string, number>()]))
    const queue = [waiting('s1'), waiting('s2', { tenantId: 't1' }), waiting('s3'), waiting('s4', { tenantId: 't1' })]
    assert.deepEqual(places(planPlacement(queue, fleet, [], { spread })), ['a', 'a', 'b', 'b'])
  })

  test('a pool member is worth more than any spread', () => {
    const fleet = ['a', 'b'].map((id) => offer(id, { capacity: roomy, zone: id }))
    const spread = new Map([['t0', new Map([['a', 100]])]])
    assert.deepEqual(places(planPlacement([waiting('s1')], fleet, [units('a', 'k0', 1)], { spread })), ['a'])
  })

  test('picks among the near-best only, and none with the better tier is passed over', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1 }), (chance) => {
        const fleet = Array.from({ length: 40 }, (_, index) =>
          offer(`h${String(index).padStart(2, '0')}`, { capacity: roomy, reserved: { vcpuMilli: 0, memoryMb: 60_000 - index * 1_000, diskGb: 0 } }),
        )
        let drawn = 0
        const pick = (among: number): number => {
          assert.ok(among <= 5, 'an eighth of forty')
          drawn += 1
          return (chance[drawn % chance.length] ?? 0) % among
        }
        const near = new Set(['h00', 'h01', 'h02', 'h03', 'h04'])
        assert.ok(near.has(String(places(planPlacement([waiting('s1')], fleet, [], { pick }))[0])))
        assert.deepEqual(places(planPlacement([waiting('s1')], fleet, [units('h39', 'k0', 1)], { pick })), ['h39'])
        assert.notEqual(places(planPlacement([waiting('s1', { avoidHostId: 'h00' })], fleet, [], { pick }))[0], 'h00')
      }),
    )
  })

  test('schedulers that place at the same time prefer other parts of the fleet, and use all of it', () => {
    const fleet = Array.from({ length: 16 }, (_, index) => offer(`h${String(index).padStart(2, '0')}`, { capacity: { ...SIZE, vcpuMilli: 1_000 } }))
    const queue = Array.from({ length: 16 }, (_, index) => waiting(`s${index}`))
    const first = (part: number) => places(planPlacement(queue, fleet, [], { schedulers: 4, pick: (among) => Math.min(part, among - 1) }))
    assert.equal(new Set([0, 1, 2, 3].flatMap((part) => first(part).slice(0, 4))).size, 16)
    assert.equal(new Set(first(0)).size, 16)
  })
})

describe('one that has waited long', () => {
  const full = { vcpuMilli: 0, memoryMb: 1_700, diskGb: 0 }
  const large = { ...SIZE, memoryMb: 2_048 }
  const fleet = ['a', 'b'].map((id) => offer(id, { reserved: { ...full, memoryMb: id === 'a' ? 1_000 : 1_200 } }))

  test('keeps the host on which the most is free: those behind it get none of that', () => {
    const queue = [waiting('large', { need: large, isAged: true }), waiting('s1'), waiting('s2'), waiting('s3')]
    const [reason, ...rest] = places(plan(queue, fleet))
    assert.match(reason ?? '', /^no_capacity: .*2 hosts full; it has waited 30 s, so what comes free on a is kept for it$/)
    assert.deepEqual(rest.slice(0, 1), ['b'])
    assert.match(rest[1] ?? '', /^no_capacity: /)
  })

  test('keeps none before that, and none that could never hold it', () => {
    assert.deepEqual(places(plan([waiting('large', { need: large }), waiting('s1'), waiting('s2')], fleet)).slice(1), ['b', 'a'])
    assert.deepEqual(places(plan([waiting('huge', { need: { ...large, memoryMb: 4_096 }, isAged: true }), waiting('s1'), waiting('s2')], fleet)).slice(1), [
      'b',
      'a',
    ])
  })

  test('is thought of also by the scheduler that does not place it', () => {
    const answer = planPlacement([waiting('s1'), waiting('s2')], fleet, [], { kept: [waiting('large', { need: large, isAged: true })] })
    assert.equal(places(answer)[0], 'b')
    assert.match(places(answer)[1] ?? '', /^no_capacity: /)
  })

  test('keep an eighth of the fleet at most', () => {
    const many = Array.from({ length: 16 }, (_, index) => offer(`h${String(index).padStart(2, '0')}`, { reserved: { ...full, memoryMb: 1_000 } }))
    const aged = Array.from({ length: 10 }, (_, index) => waiting(`large${index}`, { need: large, isAged: true }))
    const reasons = places(plan(aged, many))
    assert.equal(reasons.filter((reason) => reason.includes('is kept for it')).length, 2)
  })
})

describe('headroom for the loss of a host', () => {
  const rules = { hostLossHeadroom: true }
  const size = { vcpuMilli: 4_000, memoryMb: 2_048, diskGb: 100 }
  const fleet = ['a', 'b', 'c'].map((id) => offer(id, { capacity: size }))
  const queue = Array.from({ length: 12 }, (_, index) => waiting(`s${index}`))

  test('leaves free what the largest host of a class offers, and says so', () => {
    const answer = places(planPlacement(queue, fleet, [], { rules }))
    assert.equal(answer.filter((host) => host.length === 1).length, 8)
    assert.match(answer[8] ?? '', /^no_capacity: .* hosts? of a class that keeps room for the loss of its largest host/)
  })

  test('is there for what ran before', () => {
    const again = queue.map((sandbox) => ({ ...sandbox, recovers: true }))
    assert.equal(places(planPlacement(again, fleet, [], { rules })).filter((host) => host.length === 1).length, 12)
  })

  test('is kept in each class by itself, and not where a host is alone', () => {
    const classes = [
      offer('a', { capacity: size, hostClass: 'x' }),
      offer('b', { capacity: size, hostClass: 'x' }),
      offer('c', { capacity: size, hostClass: 'y' }),
    ]
    const answer = places(planPlacement(queue, classes, [], { rules }))
    assert.equal(answer.filter((host) => host === 'c').length, 4)
    assert.equal(answer.filter((host) => host === 'a' || host === 'b').length, 4)
  })

  test('is off unless it is wanted', () => {
    assert.equal(places(plan(queue, fleet)).filter((host) => host.length === 1).length, 12)
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
