/**
 * A burst: two hundred creates at once from one client, each a gVisor of its own. None fails, none is made twice, none is shared, and the machine runs
 * exactly as many sentries as there are sandboxes.
 */
import assert from 'node:assert/strict'
import type { Sandbox } from '@sandglass/sdk'
import { Sandbox as SdkSandbox } from '@sandglass/sdk'
import { must } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { ownInstallation } from '../file-installation.ts'
import type { Given } from '../fixture.ts'
import { servingSentries } from '../sentries.ts'

/** Of SMALL sandboxes, more than a burst takes; what they are given is little, what they really take is less. */
const ROOM = { SANDGLASS_CAPACITY_VCPU: '64', SANDGLASS_CAPACITY_MEMORY_MB: '65536', SANDGLASS_CAPACITY_DISK_GB: '512' }
const SMALL = { vcpu: 0.1, memoryMb: 128, diskGb: 1 }
const COUNT = { full: 200, small: 6 } as const
/** A cold start takes half a second of one processor, so two hundred take minutes where others work too. */
const BURST_MS = 480_000
const AT_ONCE = 16

type Born = { readonly id: string; readonly bootId: () => Promise<string> }

type Nursery = {
  readonly create: () => Promise<Born>
  /** Ids that the platform lists. */
  readonly listed: () => Promise<readonly string[]>
  /** Sentries that the machine runs. */
  readonly runtimes: () => number
}

const bootIdOf = async (sandbox: Sandbox): Promise<string> => (await sandbox.exec(['cat', '/proc/sys/kernel/random/boot_id'], { check: true })).stdout.trim()

async function nursery(): Promise<Given<Nursery>> {
  const installation = await ownInstallation(() => ROOM)
  const client = installation.client()
  const value: Nursery = {
    async create() {
      const sandbox = await SdkSandbox.create({ client, resources: SMALL, ttlSeconds: 3_600, timeoutMs: BURST_MS })
      return { id: sandbox.id, bootId: () => bootIdOf(sandbox) }
    },
    listed: async () => (await installation.sandboxes()).map(({ id }) => id),
    runtimes: () => servingSentries(installation.home).length,
  }
  return {
    value,
    async dispose() {
      await inTurns(await installation.sandboxes(), (sandbox) => sandbox.delete())
    },
  }
}

/** Some at a time, so that the tests of this machine and not its length are what is measured. */
async function inTurns<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const rest = all.entries()
  const worker = async (): Promise<void> => {
    for (const [index, one] of rest) results[index] = await work(one)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}

defineCase<Nursery>({
  id: 'burst',
  title: 'two hundred creates at once: none fails, none is doubled, each has a kernel of its own',
  subject: nursery,
  timeoutMs: 700_000,
  async run({ create, listed, runtimes }, size) {
    const count = COUNT[size]
    const outcomes = await Promise.allSettled(Array.from({ length: count }, create))
    const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason)] : []))
    assert.deepEqual(failures, [], `none of ${count} creates fails.`)
    const born = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    const ids = new Set(born.map(({ id }) => id))
    assert.equal(ids.size, count, 'each create is answered with a sandbox of its own.')
    assert.deepEqual([...(await listed())].sort(), [...ids].sort(), 'the platform lists these and no others.')
    assert.equal(runtimes(), count, 'the machine runs one sentry for each.')
    const bootIds = await inTurns(born, ({ id, bootId }) => must(`a command of ${id}`, bootId()))
    for (const bootId of bootIds) assert.match(bootId, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'a boot id has its form.')
    assert.equal(new Set(bootIds).size, count, 'each sandbox has booted by itself.')
  },
  defects: {
    'a create is refused': {
      breaks: (real) => {
        let left = 3
        return {
          ...real,
          create: async () => {
            left -= 1
            if (left === 0) throw new Error('refused')
            return real.create()
          },
        }
      },
      says: /none of 6 creates fails/,
    },
    'two creates are answered with one sandbox': {
      breaks: (real) => {
        let first: Promise<Born> | undefined
        let count = 0
        return {
          ...real,
          create: () => {
            count += 1
            first ??= real.create()
            return count <= 2 ? first : real.create()
          },
        }
      },
      says: /each create is answered with a sandbox of its own/,
    },
    'a create is done twice': {
      breaks: (real) => {
        let doubled = false
        return {
          ...real,
          create: async () => {
            const before = doubled
            doubled = true
            if (!before) await real.create()
            return real.create()
          },
        }
      },
      says: /the platform lists these and no others/,
    },
    'a runtime is missing': {
      breaks: (real) => ({ ...real, runtimes: () => real.runtimes() - 1 }),
      says: /the machine runs one sentry for each/,
    },
    'two sandboxes share a kernel': {
      breaks: (real) => {
        let shared: (() => Promise<string>) | undefined
        return {
          ...real,
          create: async () => {
            const born = await real.create()
            shared ??= born.bootId
            return { ...born, bootId: shared }
          },
        }
      },
      says: /each sandbox has booted by itself/,
    },
  },
})
