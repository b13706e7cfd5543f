/**
 * More than fits: a host with room for a few gets many at once. As many sentries run as fit, never one more; the others wait and say why, and run as
 * others end.
 */
import assert from 'node:assert/strict'
import { Sandbox, type SandboxStatus } from '@sandglass/sdk'
import { must, until } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { ownInstallation } from '../file-installation.ts'
import type { Given } from '../fixture.ts'
import { servingSentries } from '../sentries.ts'

const FITS = 5
const ASKED = { full: 16, small: 8 } as const
const MEMORY_MB = 128
const SMALL = { vcpu: 0.1, memoryMb: MEMORY_MB, diskGb: 1 }
/** As a runtime calls itself: its sandbox and generation, or the pool member that it was. */
const RUNTIME = /\b(sb[a-z0-9]{2}[a-z2-7]{16}-g[0-9]+|pm[a-z2-7]{16})\b/
const WAIT_MS = { full: 60_000, small: 30_000 } as const

type Seen = { readonly id: string; readonly status: SandboxStatus; readonly waitsBecause: string | null }

type Crowd = {
  /** Accepted, not waited for. */
  readonly ask: () => Promise<string>
  readonly seen: () => Promise<readonly Seen[]>
  readonly end: (id: string) => Promise<void>
  /** Of each sentry that the machine runs, the runtime that it is. */
  readonly runtimes: () => readonly string[]
}

async function crowd(): Promise<Given<Crowd>> {
  // Pools would hold a part of the room, and give it up: another test's matter.
  const installation = await ownInstallation(() => ({ SANDGLASS_CAPACITY_MEMORY_MB: String(FITS * MEMORY_MB), SANDGLASS_POOL_FLOOR: '0' }))
  const client = installation.client()
  return {
    value: {
      ask: async () => (await Sandbox.create({ client, resources: SMALL, ttlSeconds: 3_600, wait: false })).sandbox.id,
      seen: async () =>
        (await installation.sandboxes()).map(({ id, resource }) => ({ id, status: resource.status, waitsBecause: resource.unschedulable_reason })),
      end: async (id) => (await Sandbox.get(id, { client })).delete(),
      runtimes: () => servingSentries(installation.home).map(({ argv }) => RUNTIME.exec(argv.join(' '))?.[0] ?? 'unknown'),
    },
    async dispose() {
      await Promise.all((await installation.sandboxes()).map((sandbox) => sandbox.delete()))
    },
  }
}

const isReady = ({ status }: Seen): boolean => status === 'ready'

defineCase<Crowd>({
  id: 'capacity',
  title: `with room for ${FITS}, exactly ${FITS} run; the others wait with a reason, and run as others end`,
  subject: crowd,
  timeoutMs: 300_000,
  async run({ ask, seen, end, runtimes }, size) {
    const limitMs = WAIT_MS[size]
    const asked = new Set(await must('asking', Promise.all(Array.from({ length: ASKED[size] }, ask))))
    assert.equal(asked.size, ASKED[size], 'each is accepted.')
    let most = 0
    const look = async (): Promise<readonly Seen[]> => {
      // A sentry that forks is seen twice for a moment.
      most = Math.max(most, new Set(runtimes()).size)
      return seen()
    }
    const ran = new Set<string>()
    while (ran.size < asked.size) {
      const left = asked.size - ran.size
      const fitting = Math.min(FITS, left)
      const running = await until(limitMs, `${fitting} of the ${left} that are left run`, async () => {
        const ready = (await look()).filter(isReady)
        return ready.length === fitting ? ready : undefined
      })
      assert.equal(new Set(runtimes()).size, fitting, 'the machine runs a sentry for each that is ready, and no other.')
      await until(limitMs, 'each of the others waits with a reason', async () =>
        (await look()).filter((one) => !isReady(one)).every(({ status, waitsBecause }) => status === 'pending' && /^no_capacity: /.test(waitsBecause ?? '')),
      )
      for (const { id } of running) ran.add(id)
      await must('an end', Promise.all(running.map(({ id }) => end(id))))
    }
    assert.deepEqual([...ran].sort(), [...asked].sort(), 'each of them ran, once.')
    assert.ok(most <= FITS, `never do more run than fit; there were ${most}.`)
  },
  defects: {
    'one more runs than fits': {
      breaks: (real) => ({ ...real, runtimes: () => [...real.runtimes(), 'one more'] }),
      says: /a sentry for each that is ready, and no other/,
    },
    'what waits says nothing': {
      breaks: (real) => ({ ...real, seen: async () => (await real.seen()).map((one) => ({ ...one, waitsBecause: null })) }),
      says: /each of the others waits with a reason: still not so/,
    },
    'what waits never runs': {
      breaks: (real) => ({ ...real, end: async () => undefined }),
      says: /that are left run: still not so/,
    },
  },
})
