/** What a host does before it asks for a new epoch, and in which order. Disk and control plane are scripts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError } from '@sandglass/contract'
import type { ControlClient } from '../src/control/control-client.ts'
import { HostLease } from '../src/control/host-lease.ts'
import type { HostRecord } from '../src/domain/host-record.ts'
import { unenforced } from '../src/warden/unenforced.ts'
import { HOST } from './domain/builders.ts'
import { linkOf } from './support/link-of.ts'
import { ScriptedHost } from './support/scripted-host.ts'

const held: HostRecord = { format: 1, host_id: HOST, epoch: 3, floor: 3, boot_id: 'the-old-boot', last_seq: 9 }

/** Runs the link until it has asked, or has tried to a second time. */
async function happenedBefore(bootId: string, failing: 'nothing' | 'end' | 'write'): Promise<string[]> {
  const host = new ScriptedHost()
  const happened: string[] = []
  const stopping = new AbortController()
  let failures = 0
  const step = async (name: string, fails: boolean): Promise<void> => {
    await host.clock.wait(0)
    happened.push(fails ? `${name} fails` : name)
    if (!fails) return
    failures += 1
    if (failures === 2) stopping.abort(new Error('the test is over'))
    throw new Error(`${name} was told to fail`)
  }
  const records = { load: async () => held, write: (record: HostRecord) => step(`floor ${record.floor}`, failing === 'write') }
  const unreachable = (): never => {
    throw new CodedError('unavailable')
  }
  const client: ControlClient = {
    async register({ expected_epoch }) {
      happened.push(`expects ${expected_epoch}`)
      stopping.abort(new Error('the test is over'))
      return unreachable()
    },
    renew: unreachable,
    report: unreachable,
    watch: unreachable,
  }
  const link = linkOf(host, {
    client,
    lease: await HostLease.load(records, bootId),
    warden: unenforced(host.clock, 25_000),
    endEverything: () => step('end everything', failing === 'end'),
  })
  await link.run(stopping.signal)
  return happened
}

test('under a new boot everything is ended, then the old epoch is given up on disk, then the next one is asked for', async () => {
  assert.deepEqual(await happenedBefore('the-new-boot', 'nothing'), ['end everything', 'floor 4', 'expects 3'])
})

test('what does not end keeps the host from asking (register.empty)', async () => {
  assert.deepEqual(await happenedBefore('the-new-boot', 'end'), ['end everything fails', 'end everything fails'])
})

test('a floor that cannot be written keeps the host from asking (register.floor)', async () => {
  assert.deepEqual(await happenedBefore('the-new-boot', 'write'), ['end everything', 'floor 4 fails', 'end everything', 'floor 4 fails'])
})

test('under the same boot the epoch is resumed and nothing is ended', async () => {
  assert.deepEqual(await happenedBefore('the-old-boot', 'nothing'), ['expects 2'])
})
