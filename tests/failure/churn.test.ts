/**
 * Sandboxes that come and go, by the thousand: afterwards the machine holds of this installation what it held before, in every kind that the kernel
 * knows, and no process of ours has grown.
 */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { must } from '../e2e/bounds.ts'
import { defineCase, type Size } from '../e2e/case.ts'
import { FLOODS, GROWTH_BYTES } from '../e2e/floods/sizes.ts'
import { type Allowance, type Levels, levels, settledGrowth } from './flat.ts'
import { InstallationUnderTest } from './installation-under-test.ts'
import type { Thing } from './leftovers.ts'
import { until } from './persist.ts'

const IN_FLIGHT = 4
const CYCLES = { full: FLOODS.cycles, small: 4 } as const
const WARM_UP = { full: 24, small: 2 } as const
const SMALL = { vcpu: 0.1, memory_mb: 128, disk_gb: 1 }
const WAIT_SECONDS = 60
/** A host keeps the record of an ended sandbox until no late ticket can arrive, LIMITS.ticketTerms renewals. */
const FORGOTTEN_MS = { full: 90_000, small: 15_000 } as const
const REST_MS = 60_000
const QUIET_MS = { full: 20_000, small: 3_000 } as const
const ALLOWED: Allowance = { pssBytes: GROWTH_BYTES, descriptors: 8, threads: 4 }

type Host = {
  /** Creates a sandbox, runs a command in it, deletes it. */
  readonly cycle: (key: string) => Promise<void>
  /** What the installation has on the machine. */
  readonly things: () => readonly Thing[]
  readonly levels: () => Levels
}

// A pool follows demand, so it is larger after much of it; that is its purpose, and another test's.
const installation = await InstallationUnderTest.start({ SANDGLASS_POOL_FLOOR: '0' })
after(() => installation[Symbol.asyncDispose]())

async function cycle(key: string): Promise<void> {
  const { api } = installation
  const sandbox = await api.createSandbox(key, { resources: SMALL, ttl_seconds: 600 }, WAIT_SECONDS)
  assert.equal(sandbox.status, 'ready', `${key} becomes ready`)
  assert.equal((await api.exec(sandbox, { argv: ['echo', key] })).stdout, `${key}\n`)
  assert.equal(await api.deleteSandbox(sandbox.id, WAIT_SECONDS), 204, `${key} ends`)
}

/** What a defect has left. */
async function deleteAll(): Promise<void> {
  const { api } = installation
  for (const { id } of await api.listSandboxes('')) await api.deleteSandbox(id, WAIT_SECONDS)
}

async function run(host: Host, name: string, count: number): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const key = `churn-${name}-${next}-${process.hrtime.bigint()}`
      next += 1
      await must(key, host.cycle(key))
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
}

/** How many there are of each kind; in a self-check without the records, which it has no time to wait for. */
function census(host: Host, size: Size): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { kind } of host.things()) if (size === 'full' || kind !== 'record') counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** What there is more of than before, once it has had its time to go. */
async function remaining(before: Readonly<Record<string, number>>, host: Host, size: Size): Promise<string[]> {
  let lines: string[] = []
  await until(FORGOTTEN_MS[size], 'the machine being as before', () => {
    lines = Object.entries(census(host, size)).flatMap(([kind, count]) =>
      count > (before[kind] ?? 0) ? [`${count} of kind ${kind} instead of ${before[kind] ?? 0}`] : [],
    )
    return lines.length === 0 ? true : undefined
  }).catch(() => undefined)
  return lines
}

defineCase<Host>({
  id: 'churn',
  title: `${FLOODS.cycles} sandboxes that come and go leave the machine as it was`,
  subject: async () => ({ value: { cycle, things: () => installation.inventory(), levels: () => levels(installation.home) }, dispose: deleteAll }),
  timeoutMs: 25 * 60_000,
  async run(host, size) {
    await run(host, 'warm', WARM_UP[size])
    const resting = await until(REST_MS, 'the machine resting', () => {
      const others = host.things().filter(({ kind, sandbox }) => kind !== 'record' && sandbox !== null)
      return others.length === 0 ? { ...census(host, size), record: 0 } : undefined
    })
    const before = host.levels()
    await run(host, size, CYCLES[size])
    assert.deepEqual(await remaining(resting, host, size), [], 'nothing of them is left on the machine.')
    assert.deepEqual(await settledGrowth(before, host.levels, ALLOWED, QUIET_MS[size]), [], 'nothing grew with them.')
  },
  defects: {
    'a mount is left of each': {
      breaks: (real) => leavesBehind(real, 'mount'),
      says: /nothing of them is left on the machine[\s\S]*of kind mount/,
    },
    'a cgroup is left of each': {
      breaks: (real) => leavesBehind(real, 'cgroup'),
      says: /nothing of them is left on the machine[\s\S]*of kind cgroup/,
    },
    'the host agent keeps a descriptor of each': {
      breaks: (real) => {
        let cycles = 0
        return {
          ...real,
          async cycle(key) {
            await real.cycle(key)
            if (!key.includes('-warm-')) cycles += 1
          },
          levels() {
            const seen = real.levels()
            const agent = seen['host-agent']
            return agent === undefined ? seen : { ...seen, 'host-agent': { ...agent, descriptors: agent.descriptors + 4 * cycles } }
          },
        }
      },
      says: /nothing grew with them[\s\S]*descriptors of host-agent/,
    },
    'a sandbox is not ended': {
      breaks: (real) => ({
        ...real,
        async cycle(key) {
          if (key.includes('-warm-')) await real.cycle(key)
          else await installation.api.createSandbox(key, { resources: SMALL, ttl_seconds: 600 }, WAIT_SECONDS)
        },
      }),
      says: /nothing of them is left on the machine[\s\S]*of kind process/,
    },
  },
})

function leavesBehind(real: Host, kind: Thing['kind']): Host {
  let cycles = 0
  return {
    ...real,
    async cycle(key) {
      await real.cycle(key)
      if (!key.includes('-warm-')) cycles += 1
    },
    things: () => [...real.things(), ...Array.from({ length: cycles }, (_, index): Thing => ({ kind, what: `left of ${index}`, sandbox: null }))],
  }
}
