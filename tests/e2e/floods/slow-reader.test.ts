/** A reader that takes a megabyte a second of a flood of gigabytes: the program waits for it, our memory does not pay for it, nobody else notices. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import type { Growth } from '../memory-watch.ts'
import type { Running } from '../subject/sandboxed.ts'
import { type Flooded, flood, flooded, isFlood } from './flooded.ts'
import { FLOODS, GIB, GROWTH_BYTES, MIB } from './sizes.ts'

const FLOOD_BYTES = 5 * GIB
const WARM_UP_BYTES = 128 * MIB
const PER_SECOND = 1_000_000
const SECONDS = { full: FLOODS.slowSeconds, small: 4 } as const
/** Windows of the hops, and what is kept for replay; a sixtieth of what would come in the same time without a reader. */
const AHEAD_BYTES = 16 * MIB
const NEIGHBOUR_MS = 15_000
const FIRST_MS = 10_000

/** Reads at most so much a second, from now on. @returns bytes read */
async function readSlowly({ stdout }: Running, seconds: number): Promise<number> {
  const began = performance.now()
  let read = 0
  for await (const part of stdout) {
    assert.ok(isFlood(part, read), `the bytes behind offset ${read} are those of the flood.`)
    read += part.byteLength
    const early = (read / PER_SECOND) * 1_000 - (performance.now() - began)
    // The pace of the reader is what is tested.
    if (early > 0) await delay(early)
    if (performance.now() - began > seconds * 1_000) return read
  }
  throw new assert.AssertionError({ message: `the flood goes on; it ended after ${read} bytes.` })
}

async function warmUp({ sandbox }: Flooded): Promise<void> {
  const running = await must('a flood for warming up', sandbox.spawn({ argv: flood(WARM_UP_BYTES) }))
  let read = 0
  for await (const part of running.stdout) read += part.byteLength
  assert.equal(read, WARM_UP_BYTES)
}

function assertFlat(growth: Growth): void {
  for (const [role, bytes] of Object.entries(growth)) {
    assert.ok(bytes <= GROWTH_BYTES, `${role} stays flat behind a slow reader; it grew by ${(bytes / MIB).toFixed(1)} MiB.`)
  }
}

defineCase<Flooded>({
  id: 'slow reader',
  title: 'a flood that is read slowly waits, and costs no memory',
  subject: flooded,
  timeoutMs: 240_000,
  async run(subject, size) {
    const { sandbox, growthDuring, written } = subject
    await warmUp(subject)
    const running = await must('a flood', sandbox.spawn({ argv: flood(FLOOD_BYTES) }))
    try {
      const growth = await growthDuring(async () => {
        const read = await within((SECONDS[size] + 30) * 1_000, 'the end of reading slowly', readSlowly(running, SECONDS[size]))
        assert.ok(read >= (SECONDS[size] * PER_SECOND) / 2, `the reader gets its megabyte a second; it got ${read} bytes.`)
        const ahead = (await written(running.id)) - read
        assert.ok(ahead <= AHEAD_BYTES, `the program waits for its reader; it is ${(ahead / MIB).toFixed(1)} MiB ahead.`)
        const neighbour = await must('a command beside it', within(NEIGHBOUR_MS, 'a command beside it', sandbox.exec({ argv: ['true'] })))
        assert.equal(neighbour.exitCode, 0)
      })
      assertFlat(growth)
    } finally {
      await within(FIRST_MS, 'the end of the flood', sandbox.kill(running.id, 'KILL'))
    }
  },
  defects: {
    'a hop keeps what is not read': {
      breaks: (real) => ({ ...real, growthDuring: async (action) => ({ ...(await real.growthDuring(action)), gateway: GROWTH_BYTES + 1 }) }),
      says: /gateway stays flat behind a slow reader/,
    },
    'the program does not wait': {
      breaks: (real) => ({ ...real, written: async (id) => (await real.written(id)) + 2 * AHEAD_BYTES }),
      says: /the program waits for its reader/,
    },
    'what is not read in time is dropped': {
      breaks: (real) => ({
        ...real,
        sandbox: {
          ...real.sandbox,
          async spawn(command) {
            const running = await real.sandbox.spawn(command)
            return command.argv?.join(' ') === flood(FLOOD_BYTES).join(' ') ? { ...running, stdout: dropping(running.stdout) } : running
          },
        },
      }),
      says: /the bytes behind offset \d+ are those of the flood/,
    },
  },
})

/** Loses one byte when a megabyte has passed. */
async function* dropping(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let passed = 0
  for await (const part of parts) {
    const before = passed
    passed += part.byteLength
    yield before < MIB && passed >= MIB ? part.subarray(1) : part
  }
}
