/** What of a renewal moves the deadline, and what of a refusal ends anything. Control plane, disk and warden are scripts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodedError } from '@sandglass/contract'
import type { ControlClient } from '../src/control/control-client.ts'
import { HostLease } from '../src/control/host-lease.ts'
import type { HostRecord } from '../src/domain/host-record.ts'
import { HOST } from './domain/builders.ts'
import { linkOf } from './support/link-of.ts'
import { ScriptedHost } from './support/scripted-host.ts'

const BOOT = 'the-boot-of-it'
const EPOCH = 3
const held: HostRecord = { format: 1, host_id: HOST, epoch: EPOCH, floor: EPOCH, boot_id: BOOT, last_seq: 9 }

type Renewal = 'answered' | 'lost' | 'another epoch' | { readonly told: number | undefined }

/** Runs the link through the renewals, and one registration more. @returns what happened, oldest first */
async function happened(renewals: readonly Renewal[], writes: 'written' | 'unwritten' = 'written'): Promise<string[]> {
  const host = new ScriptedHost()
  const events: string[] = []
  const stopping = new AbortController()
  const stop = (): never => {
    stopping.abort(new Error('the test is over'))
    throw new CodedError('unavailable')
  }
  let moments = 0n
  const left = [...renewals]
  let failures = writes === 'unwritten' ? 1 : 0
  const client: ControlClient = {
    async register({ expected_epoch }) {
      events.push(`register ${expected_epoch}`)
      if (left.length === 0) stop()
      return { epoch: expected_epoch + 1, seq: 10, ticket_keys: [], renew_period_ms: 1_000 }
    },
    async renew(_, { epoch }) {
      const next = left.shift()
      if (next === undefined) return stop()
      events.push(`renew ${epoch}`)
      if (next === 'lost') throw new CodedError('unavailable')
      if (typeof next === 'object') throw new CodedError('stale_epoch', undefined, next.told === undefined ? {} : { epoch: next.told })
      return { epoch: next === 'answered' ? epoch : epoch + 1, seq: 11 }
    },
    report: () => new Promise(() => undefined),
    async *watch(_, __, signal) {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      yield { type: 'heartbeat' }
    },
  }
  const link = linkOf(host, {
    client,
    lease: await HostLease.load(
      {
        load: async () => held,
        async write({ floor }) {
          if (floor === EPOCH) return
          failures -= 1
          events.push(failures >= 0 ? `floor ${floor} fails` : `floor ${floor}`)
          if (failures >= 0) throw new Error('the disk is full')
        },
      },
      BOOT,
    ),
    warden: {
      async moment() {
        moments += 1n
        events.push(`moment ${moments}`)
        return moments
      },
      async renewed(sent) {
        events.push(`prolonged from ${sent}`)
      },
    },
    async endEverything() {
      events.push('end everything')
    },
  })
  await link.run(stopping.signal)
  return events
}

/** Without what follows the last renewal: the moment that is taken for the next one. */
const upToLast = (events: readonly string[]): string[] => events.slice(0, -1)
const joined = ['moment 1', `register ${EPOCH - 1}`, 'prolonged from 1']

test('the deadline counts from a moment before the sending, of registrations too (renew.sent)', async () => {
  assert.deepEqual(upToLast(await happened(['answered'])), [...joined, 'moment 2', `renew ${EPOCH}`, 'prolonged from 2'])
})

test('a renewal without an answer prolongs nothing, and the next one counts from its own sending', async () => {
  const events = await happened(['lost', 'answered'])
  assert.deepEqual(upToLast(events), [...joined, 'moment 2', `renew ${EPOCH}`, 'moment 3', `renew ${EPOCH}`, 'prolonged from 3'])
})

test('an answer for another epoch prolongs nothing', async () => {
  assert.deepEqual(upToLast(await happened(['another epoch'])), [...joined, 'moment 2', `renew ${EPOCH}`])
})

for (const told of [undefined, 0, EPOCH - 1, EPOCH]) {
  test(`a refusal that tells of ${told ?? 'no epoch'} ends nothing and prolongs nothing`, async () => {
    const events = await happened([{ told }, 'answered'])
    assert.deepEqual(upToLast(events), [...joined, 'moment 2', `renew ${EPOCH}`, 'moment 3', `renew ${EPOCH}`, 'prolonged from 3'])
  })
}

test('a refusal that tells of a later epoch: the floor behind it is on disk, everything ends, and only then the next one is asked for', async () => {
  const told = EPOCH + 4
  assert.deepEqual(await happened([{ told }]), [
    ...joined,
    'moment 2',
    `renew ${EPOCH}`,
    `floor ${told + 1}`,
    'end everything',
    `floor ${told + 1}`,
    'moment 3',
    `register ${told}`,
  ])
})

test('a floor that cannot be written at that moment is, before the next epoch is asked for (register.floor)', async () => {
  const told = EPOCH + 1
  assert.deepEqual(await happened([{ told }], 'unwritten'), [
    ...joined,
    'moment 2',
    `renew ${EPOCH}`,
    `floor ${told + 1} fails`,
    'end everything',
    `floor ${told + 1}`,
    'moment 3',
    `register ${told}`,
  ])
})
