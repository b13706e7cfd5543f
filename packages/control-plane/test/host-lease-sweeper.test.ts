/** The observer of leases over a real database: twice, late, beside twins, through outages, and whatever clocks are set to. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type SimulatedHost, until } from '@sandglass/testkit'
import { type Rig, type RigOptions, startRig, usePostgres } from './harness.ts'
import { LeaseObserver } from './lease-observer.ts'

const postgres = usePostgres()

/** The control plane's own observer looks when it starts, and not again. */
const STILL: RigOptions = { timing: { fencePollMs: 3_600_000 } }
const WAIT_MS = 40_000
const epochs = async (rig: Rig): Promise<number[]> =>
  (await rig.rows<{ epoch: number }>('SELECT epoch::int FROM sandglass.host_leases ORDER BY epoch')).map((row) => row.epoch)
const fenceRows = (rig: Rig) =>
  rig.rows<{ subject: string; actor_id: string; detail: object }>("SELECT subject, actor_id, detail FROM sandglass.audit_log WHERE action = 'host.fence'")
async function observed(rig: Rig): Promise<{ host: SimulatedHost; observer: LeaseObserver }> {
  const host = await rig.host()
  const observer = new LeaseObserver(rig)
  assert.equal(await observer.look(), 0)
  return { host, observer }
}

describe('the observer', () => {
  test('fences a host that renewed nothing for lease and grace: an epoch that nobody holds, and an audit row', async () => {
    await using rig = await startRig(postgres.current, STILL)
    const { host, observer } = await observed(rig)
    assert.equal(await observer.watch(WAIT_MS - 1), 0)
    assert.equal(await observer.look(1), 1)
    assert.deepEqual(await rig.rows('SELECT epoch::int, seq::int, holder, fenced_epoch::int FROM sandglass.host_leases'), [
      { epoch: 2, seq: 1, holder: null, fenced_epoch: 1 },
    ])
    assert.deepEqual(await fenceRows(rig), [{ subject: host.id, actor_id: 'host-lease-sweeper', detail: { epoch: 1, seq: 1 } }])
    await until(
      'its watch to be ended',
      async () => host.watchProblem !== undefined || (await rig.call<string>('GET', '/metrics', { key: '' })).body.includes('sandglass_internal_streams 0\n'),
    )
    await assert.rejects(host.renew(), { code: 'stale_epoch', context: { epoch: 2 } })
  })

  test('twice and late: it fences once, and a host that nobody holds is left alone for ever', async () => {
    await using rig = await startRig(postgres.current, STILL)
    const { observer } = await observed(rig)
    assert.equal(await observer.watch(WAIT_MS), 1)
    assert.equal(await observer.look(), 0)
    assert.equal(await observer.watch(3 * WAIT_MS), 0)
    assert.deepEqual(await epochs(rig), [2])
    assert.equal((await fenceRows(rig)).length, 1)
  })

  test('eight of them beside one another fence once', async () => {
    await using rig = await startRig(postgres.current, STILL)
    await rig.host({ name: 'one' })
    await rig.host({ name: 'two' })
    const observers = Array.from({ length: 8 }, () => new LeaseObserver(rig))
    await Promise.all(observers.map((observer) => observer.watch(WAIT_MS)))
    const fenced = await Promise.all(observers.map((observer) => observer.look(1_000)))
    const sum = fenced.reduce((total, count) => total + count, 0)
    assert.deepEqual([sum, await epochs(rig), (await fenceRows(rig)).length], [2, [2, 2], 2])
  })

  test('a host that renews in time is never fenced, however long it is watched', async () => {
    await using rig = await startRig(postgres.current, STILL)
    const { host, observer } = await observed(rig)
    for (let round = 0; round < 4; round += 1) {
      assert.equal(await observer.watch(WAIT_MS - 1_000), 0)
      await host.renew()
    }
    await host.register(0)
    assert.equal(await observer.watch(WAIT_MS - 1_000), 0)
    assert.deepEqual(await epochs(rig), [1])
  })

  test('a host that begins anew is counted from there, and its return behind a fence is a new life', async () => {
    await using rig = await startRig(postgres.current, STILL)
    const { host, observer } = await observed(rig)
    await observer.watch(WAIT_MS - 1_000)
    await host.reboot()
    assert.equal(await observer.watch(WAIT_MS - 1_000), 0)
    assert.equal(await observer.watch(2_000), 1)
    await host.reboot()
    assert.equal(host.epoch, 4)
    assert.equal(await observer.watch(WAIT_MS - 1_000), 0)
    assert.equal(await observer.watch(2_000), 1)
    assert.deepEqual(await epochs(rig), [5])
  })

  test('that starts, or returns from a pause or from an outage, counts anew', async () => {
    await using rig = await startRig(postgres.current, STILL)
    const { host, observer } = await observed(rig)
    await observer.watch(WAIT_MS - 1_000)
    assert.equal(await new LeaseObserver(rig).look(WAIT_MS), 0)
    assert.equal(await observer.look(3 * WAIT_MS), 0, 'it was paused')
    await observer.watch(WAIT_MS - 1_000)
    await postgres.current.crash()
    await assert.rejects(observer.look(1_000), { code: 'unavailable' })
    await postgres.current.restart()
    await until('the database', async () => (await rig.call('GET', '/readyz', { key: '' })).status === 200)
    assert.equal(await observer.look(), 0, 'the database was away')
    assert.equal(await observer.watch(WAIT_MS - 1_000), 0)
    await host.renew()
    assert.equal(await observer.watch(WAIT_MS - 1_000), 0)
    assert.deepEqual(await epochs(rig), [1])
  })

  test('whose fence the database does not take counts anew, since it took no renewals either', async () => {
    await using rig = await startRig(postgres.current, STILL)
    const { observer } = await observed(rig)
    await rig.rows('ALTER TABLE sandglass.host_leases ADD CONSTRAINT no_writes CHECK (epoch < 2) NOT VALID')
    await assert.rejects(observer.watch(WAIT_MS))
    await rig.rows('ALTER TABLE sandglass.host_leases DROP CONSTRAINT no_writes')
    assert.equal(await observer.watch(WAIT_MS), 0)
    assert.deepEqual(await epochs(rig), [1])
    assert.equal(await observer.look(1_000), 1)
  })

  for (const [what, hours] of [
    ['forward', 5],
    ['back', -5],
  ] as const) {
    test(`no clock that is set hours ${what} fences anybody or keeps anybody from being fenced: not its own, not the database's`, async () => {
      await using rig = await startRig(postgres.current, STILL)
      const { observer } = await observed(rig)
      const step = async () => {
        observer.wallMs += hours * 3_600_000
        // What the database's clock shows of the last renewal is the same as if that clock were set.
        await rig.rows('UPDATE sandglass.host_leases SET renewed_at = renewed_at - make_interval(hours => $1)', [hours])
      }
      for (let steps = 0; steps < 3; steps += 1) {
        await step()
        assert.equal(await observer.watch(10_000), 0)
      }
      await step()
      assert.equal(await observer.watch(9_999), 0)
      assert.equal(await observer.look(1), 1)
    })
  }
})

test('its status, metrics and counts are told', async () => {
  await using rig = await startRig(postgres.current, { timing: { leaseMs: 200, fenceGraceMs: 100, fencePollMs: 20 } })
  await rig.host()
  await until('the fence', async () => (await epochs(rig))[0] === 2)
  type Statuses = { items: { name: string; period_ms: number; actions: number; last_error: string | null }[] }
  const { items } = (await rig.call<Statuses>('GET', '/internal/v1/reconcilers', { key: rig.keys.operator })).body
  const { period_ms, last_error } = items.find(({ name }) => name === 'host-lease-sweeper') ?? assert.fail('it is in no list')
  assert.deepEqual([period_ms, last_error], [20, null])
  const metrics = (await rig.call<string>('GET', '/metrics', { key: '' })).body
  assert.match(metrics, /^sandglass_hosts_fenced_total 1$/m)
  assert.match(metrics, /^sandglass_host_lease_watches_total 1$/m)
  assert.match(metrics, /^sandglass_host_lease_longest_unchanged_seconds [\d.e-]+$/m)
})
