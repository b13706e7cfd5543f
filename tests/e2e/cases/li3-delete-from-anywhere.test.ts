/** LI3: a sandbox stuck in "starting" cannot be deleted; failures keep quota. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { must, until } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { type Breakable, breakable } from '../fixture.ts'
import type { Seen } from '../subject/platform.ts'

/** Moments after the request for a create at which the delete is sent: in every state on the way to ready. */
const MOMENTS_MS = [0, 5, 20, 50, 100, 200, 400, 800]
const GONE = ['terminated', undefined]

async function gone({ platform }: Breakable, { id }: Seen, when: string): Promise<void> {
  await must(`deleting ${when}`, platform.remove(id))
  const listed = (await platform.list()).find((sandbox) => sandbox.id === id)
  assert.ok(GONE.includes(listed?.status), `the list has no sandbox deleted ${when}, it says ${listed?.status}.`)
  await must(`deleting twice ${when}`, platform.remove(id))
}

async function returnsToZero({ platform, runtimes }: Breakable, before: unknown, when: string): Promise<void> {
  let reserved: unknown
  await until(20_000, 'the reservation', async () => {
    reserved = await platform.reserved()
    return JSON.stringify(reserved) === JSON.stringify(before)
  }).catch(() => assert.deepEqual(reserved, before, `what is reserved returns to what it was after ${when}.`))
  await until(20_000, 'the runtimes', async () => (await runtimes()).length === 0).catch(async () =>
    assert.deepEqual(await runtimes(), [], `no runtime is left after ${when}.`),
  )
}

defineCase<Breakable>({
  id: 'LI3',
  title: 'a delete works from every state and after every failure, and reservations return to zero',
  subject: breakable,
  timeoutMs: 400_000,
  async run(subject, size) {
    const { platform } = subject
    const before = await platform.reserved()
    for (const moment of size === 'full' ? MOMENTS_MS : [0, 50]) {
      const sandbox = await must('creating', platform.create({ wait: false }))
      await delay(moment)
      await gone(subject, sandbox, `${moment} ms after its create`)
    }
    await returnsToZero(subject, before, 'deletes on the way to ready')

    const ready = await must('creating', platform.create({}))
    assert.notDeepEqual(await platform.reserved(), before, 'a running sandbox reserves something.')
    subject.killRuntime(ready.id)
    await until(20_000, 'a killed runtime is seen', async () => (await platform.get(ready.id)).status !== 'ready')
    await gone(subject, ready, 'after its runtime was killed')
    await returnsToZero(subject, before, 'a killed runtime')

    for (const step of size === 'full' ? subject.failures : subject.failures.slice(0, 1)) {
      await subject.failing(step, async () => {
        const failed = await platform.create({ wait: false })
        await until(60_000, `the start fails (${step})`, async () => ['failed', 'terminated', 'pending'].includes((await platform.get(failed.id)).status))
        await gone(subject, failed, `after its start failed (${step})`)
      })
      await returnsToZero(subject, before, `a start that failed (${step})`)
    }
    const last = await must('creating after all that', platform.create({}))
    assert.equal(last.status, 'ready')
    await gone(subject, last, 'when ready')
    await returnsToZero(subject, before, 'everything')
  },
  defects: {
    'a delete while starting does nothing': {
      breaks: (real) => ({
        ...real,
        platform: { ...real.platform, remove: async (id) => ((await real.platform.get(id)).status === 'ready' ? real.platform.remove(id) : undefined) },
      }),
      says: /the list has no sandbox deleted 0 ms after its create/,
    },
    'failures keep what they reserved': {
      breaks: (real) => {
        let failures = 0
        const failed = (): void => {
          failures += 1
        }
        return {
          ...real,
          killRuntime: (id) => {
            failed()
            real.killRuntime(id)
          },
          platform: {
            ...real.platform,
            async reserved() {
              const amounts = await real.platform.reserved()
              return { ...amounts, memory_mb: amounts.memory_mb + 512 * failures }
            },
          },
        }
      },
      says: /what is reserved returns to what it was after a killed runtime/,
    },
    'the runtime of a deleted sandbox lives on': {
      breaks: (real) => ({ ...real, runtimes: async () => [...(await real.runtimes()), 4_194_303] }),
      says: /no runtime is left/,
    },
    'deleting twice is an error': {
      breaks: (real) => {
        const deleted = new Set<string>()
        return {
          ...real,
          platform: {
            ...real.platform,
            async remove(id) {
              if (deleted.has(id)) throw new Error('no such sandbox')
              deleted.add(id)
              await real.platform.remove(id)
            },
          },
        }
      },
      says: /deleting twice 0 ms after its create failed/,
    },
  },
})
