/** Properties of the order among tenants, over generated lines. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import fc from 'fast-check'
import { type ExactAmounts, plus, ZERO } from '../src/domain/amounts.ts'
import { fairOrder, type TenantShare, type Waiting } from '../src/domain/placement/fair-order.ts'

const FLEET: ExactAmounts = { vcpuMilli: 100_000, memoryMb: 100_000, diskGb: 100_000 }
const UNIT: ExactAmounts = { vcpuMilli: 1_000, memoryMb: 500, diskGb: 10 }

const amounts = fc.record({
  vcpuMilli: fc.integer({ min: 1, max: 5_000 }),
  memoryMb: fc.integer({ min: 1, max: 5_000 }),
  diskGb: fc.integer({ min: 1, max: 50 }),
})
const line = fc
  .array(fc.record({ tenant: fc.integer({ min: 0, max: 5 }), need: amounts, ageMs: fc.integer({ min: 0, max: 60_000 }) }), { maxLength: 60 })
  .map((all) => all.map(({ tenant, need, ageMs }, index): Waiting => ({ id: `s${String(index).padStart(3, '0')}`, tenantId: `t${tenant}`, need, ageMs })))
const tenants = fc
  .array(fc.record({ weight: fc.integer({ min: 1, max: 10 }), holds: amounts }), { minLength: 6, maxLength: 6 })
  .map((all) => all.map((one, index): TenantShare => ({ tenantId: `t${index}`, ...one })))

const burst = (tenantId: string, count: number, change: Partial<Waiting> = {}): Waiting[] =>
  Array.from({ length: count }, (_, index) => ({ id: `${tenantId}-${String(index).padStart(4, '0')}`, tenantId, need: UNIT, ageMs: 1_000, ...change }))
const holding = (tenantId: string, change: Partial<TenantShare> = {}): TenantShare => ({ tenantId, weight: 1, holds: ZERO, ...change })
const turns = (order: readonly Waiting[]): string => order.map(({ tenantId }) => tenantId).join('')

describe('the order among tenants', () => {
  test('has each that waits once', () => {
    fc.assert(
      fc.property(line, tenants, (waiting, shares) => {
        assert.deepEqual(fairOrder(waiting, shares, FLEET).toSorted(byId), waiting.toSorted(byId))
      }),
    )
  })

  test('is that of waiting within one tenant', () => {
    fc.assert(
      fc.property(line, tenants, (waiting, shares) => {
        for (const own of Map.groupBy(fairOrder(waiting, shares, FLEET), ({ tenantId }) => tenantId).values()) {
          assert.ok(own.every(({ ageMs }, index) => index === 0 || ageMs <= (own[index - 1]?.ageMs ?? 0)))
        }
      }),
    )
  })

  test('does not depend on the order in which it was read, and its beginning is that of the whole', () => {
    fc.assert(
      fc.property(line, tenants, fc.integer({ min: 0, max: 60 }), (waiting, shares, most) => {
        const whole = fairOrder(waiting, shares, FLEET)
        assert.deepEqual(fairOrder(waiting.toReversed(), shares.toReversed(), FLEET), whole)
        assert.deepEqual(fairOrder(waiting, shares, FLEET, most), whole.slice(0, most))
      }),
    )
  })

  test('serves nobody twice while one of the same age and a smaller share, that one’s next included, still waits', () => {
    fc.assert(
      fc.property(line, tenants, (waiting, shares) => {
        const sameAge = waiting.map((one) => ({ ...one, ageMs: 0 }))
        const held = new Map(shares.map(({ tenantId, holds }) => [tenantId, holds]))
        const left = Map.groupBy(sameAge, ({ tenantId }) => tenantId)
        const shareOf = (tenantId: string): number => dominant(held.get(tenantId) ?? ZERO) / (shares.find((one) => one.tenantId === tenantId)?.weight ?? 1)
        for (const { id, tenantId, need } of fairOrder(sameAge, shares, FLEET)) {
          for (const [other, own] of left) assert.ok(own.length === 0 || shareOf(tenantId) <= shareOf(other))
          left.set(tenantId, left.get(tenantId)?.filter((one) => one.id !== id) ?? [])
          held.set(tenantId, plus(held.get(tenantId) ?? ZERO, need))
        }
      }),
    )
  })

  test('one tenant’s thousand do not delay another’s one', () => {
    const order = fairOrder([...burst('a', 1_000), ...burst('b', 1)], [holding('a'), holding('b')], FLEET)
    assert.equal(turns(order.slice(0, 3)), 'aba')
  })

  test('who holds nothing is served before who holds much, however many of those wait', () => {
    const order = fairOrder([...burst('a', 1_000), ...burst('b', 9)], [holding('a', { holds: { ...UNIT, vcpuMilli: 10_000 } }), holding('b')], FLEET)
    assert.equal(turns(order.slice(0, 9)), 'bbbbbbbbb')
  })

  test('a tenant of weight two gets twice as many turns', () => {
    const order = fairOrder([...burst('a', 30), ...burst('b', 30)], [holding('a'), holding('b', { weight: 2 })], FLEET).slice(0, 30)
    assert.equal(order.filter(({ tenantId }) => tenantId === 'b').length, 20)
  })

  test('counts the resource of which a tenant has the largest share', () => {
    const small = { vcpuMilli: 1_000, memoryMb: 100, diskGb: 1 }
    const large = { vcpuMilli: 100, memoryMb: 4_000, diskGb: 1 }
    const order = fairOrder([...burst('a', 40, { need: small }), ...burst('b', 40, { need: large })], [holding('a'), holding('b')], FLEET).slice(0, 25)
    assert.equal(order.filter(({ tenantId }) => tenantId === 'b').length, 5)
  })

  test('who has waited long enough is next, whatever its tenant holds', () => {
    const rich = holding('a', { holds: FLEET })
    const { placementAgeingAfterMs: afterMs, placementAgeingMs: ageingMs } = LIMITS
    const old = burst('a', 1, { ageMs: afterMs + ageingMs + 1_000 })
    assert.equal(turns(fairOrder([...burst('b', 5), ...old], [rich, holding('b')], FLEET)), 'abbbbb')
    const younger = burst('a', 1, { ageMs: afterMs + ageingMs - 1_000 })
    assert.equal(turns(fairOrder([...burst('b', 1), ...younger], [rich, holding('b')], FLEET)), 'ba')
  })

  test('waiting less than a minute makes nobody next: the shares alone order a burst', () => {
    const early = burst('a', 100, { ageMs: LIMITS.placementAgeingAfterMs })
    assert.equal(turns(fairOrder([...early, ...burst('b', 1, { ageMs: 0 })], [holding('a'), holding('b')], FLEET)).indexOf('b'), 1)
  })

  test('has an answer before any host is known', () => {
    assert.equal(turns(fairOrder([...burst('a', 2), ...burst('b', 1)], [], ZERO)), 'aba')
  })
})

const byId = (a: Waiting, b: Waiting): number => (a.id < b.id ? -1 : 1)
const dominant = (holds: ExactAmounts): number => Math.max(holds.vcpuMilli / FLEET.vcpuMilli, holds.memoryMb / FLEET.memoryMb, holds.diskGb / FLEET.diskGb)
