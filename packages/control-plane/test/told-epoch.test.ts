/** What a host is told that does not hold the epoch it speaks for, and what is kept of what it says too late. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { HostReport } from '@sandglass/contract'
import { MachineClient, TEST_AUTHORITY, until } from '@sandglass/testkit'
import { type Rig, startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()

/** Another epoch of the host is the living one. */
const advance = (rig: Rig, epochs: number) => rig.rows('UPDATE sandglass.host_leases SET epoch = epoch + $1, holder = NULL', [epochs])
const lateRows = (rig: Rig) =>
  rig.rows<{ subject: string; detail: object }>("SELECT subject, detail FROM sandglass.audit_log WHERE action = 'report.late' ORDER BY id")
const ended = (sandbox: string, upto: number): HostReport => ({ type: 'ended', sandbox, upto, reason: 'ordered', detail: null, pool_version: null })

describe('a host whose epoch is over', () => {
  test('is told the present one by renew, watch, reports and register, as a member of the problem', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    await host.leave()
    await advance(rig, 3)
    const told = { code: 'stale_epoch', context: { epoch: 4 } }
    await assert.rejects(host.renew(), told)
    await assert.rejects(host.report([ended('sbl1aaaaaaaaaaaaaaaa', 1)]), told)
    await assert.rejects(host.register(0), told, 'the registration of its boot, once more')
    await assert.rejects(host.register(1), told)
    const asker = new MachineClient(rig.internalUrl, TEST_AUTHORITY.identity({ role: 'host', name: host.id }))
    await assert.rejects(asker.open(`/internal/v1/hosts/${host.id}/watch?epoch=1`, new AbortController().signal), told)
  })

  test('may take the one behind it, and nothing of the old ones is accepted any more', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host({ starts: ['hang'] })
    const { body } = await rig.create({}, { wait: 0 })
    await until('the ticket', () => host.starts[0])
    await host.leave()
    await advance(rig, 1)
    assert.equal((await host.registerAsTold()).epoch, 3)
    for (const epoch of [1, 2]) {
      await assert.rejects(host.renew(epoch), { code: 'stale_epoch', context: { epoch: 3 } })
      await assert.rejects(host.ready(body.id, 1, epoch), { code: 'stale_epoch', context: { epoch: 3 } })
      await assert.rejects(host.register(epoch - 1), { code: 'stale_epoch', context: { epoch: 3 } })
    }
    assert.notEqual((await rig.get(body.id)).status, 'ready')
    assert.deepEqual(await host.renew(), { epoch: 3, seq: 3 })
  })

  test('one that holds a newer epoch than the database, which is an older one, is told that and is not in the audit log', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    await assert.rejects(host.report([ended('sbl1aaaaaaaaaaaaaaaa', 1)], 7), { code: 'stale_epoch', context: { epoch: 1 } })
    assert.deepEqual(await lateRows(rig), [])
  })
})

describe('a late report', () => {
  test('of an older epoch is in the audit log once for each sandbox and generation, however often and by whatever it is told', async () => {
    await using rig = await startRig(postgres.current)
    const host = await rig.host()
    const { id } = (await rig.create()).body
    await rig.stop()
    await using twin = await startRig(postgres.current, { twinOf: rig, timing: { sweepMs: 60_000 } })
    await twin.settled()
    await advance(twin, 1)
    const teller = new MachineClient(twin.internalUrl, TEST_AUTHORITY.identity({ role: 'host', name: host.id }))
    const tell = (items: readonly HostReport[]) => teller.post(`/internal/v1/hosts/${host.id}/reports`, { epoch: 1, items })
    const items = [ended(id, 1), ended(id, 2), ended(id, 1), { type: 'pool', key: 'a'.repeat(64), version: 1 } as const]
    const ready = { type: 'ready', sandbox: id, generation: 1, driver: 'fake', path: 'cold', evidence: {}, timings_ms: {} } as const
    for (const batch of [items, items, [ready], [ready]]) await assert.rejects(tell(batch), { code: 'stale_epoch' })
    assert.deepEqual(await lateRows(twin), [
      { subject: id, detail: { type: 'ended', generation: 1, epoch: 1, code: 'stale_epoch' } },
      { subject: id, detail: { type: 'ended', generation: 2, epoch: 1, code: 'stale_epoch' } },
    ])
  })

  test('does not hide one of another host, or of another generation', async () => {
    await using rig = await startRig(postgres.current)
    const first = await rig.host({ name: 'first' })
    const second = await rig.host({ name: 'second' })
    const { id } = (await rig.create()).body
    for (const host of [first, second, first]) {
      for (const generation of [8, 9, 9]) assert.deepEqual(await host.ready(id, generation), { outcome: 'stale', code: 'stale_generation' })
    }
    assert.equal((await lateRows(rig)).length, 4)
  })
})
