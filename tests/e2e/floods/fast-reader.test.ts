/** A reader that keeps up with a flood gets all of it, every byte, and no hop keeps any. */
import assert from 'node:assert/strict'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { digestOf } from '../subject/bytes.ts'
import { type Flooded, flood, floodBytes, flooded } from './flooded.ts'
import { FLOODS, GROWTH_BYTES, MIB } from './sizes.ts'

const BYTES = { full: FLOODS.readBytes, small: 8 * MIB } as const
const WARM_UP_BYTES = 128 * MIB
/** A tenth of what an idle machine does. */
const SLOWEST_PER_SECOND = 10 * MIB
const MARGIN_MS = 10_000

/** @returns size and SHA-256 of the flood as it was read */
async function readAll({ sandbox }: Flooded, bytes: number): Promise<{ size: number; sha256: string }> {
  const running = await must('a flood', sandbox.spawn({ argv: flood(bytes) }))
  const limitMs = (bytes / SLOWEST_PER_SECOND) * 1_000 + MARGIN_MS
  const read = await must('reading the flood', within(limitMs, `all of ${bytes} bytes`, digestOf(running.stdout)))
  assert.equal((await must('its exit', within(MARGIN_MS, 'its exit', running.exit))).exitCode, 0, 'a flood that was read to its end exits 0.')
  return read
}

defineCase<Flooded>({
  id: 'fast reader',
  title: 'a flood that is read as fast as it comes arrives whole, and costs no memory',
  subject: flooded,
  timeoutMs: 700_000,
  async run(subject, size) {
    await readAll(subject, size === 'full' ? WARM_UP_BYTES : MIB)
    const expected = await digestOf(toAsync(floodBytes(BYTES[size])))
    const growth = await subject.growthDuring(async () => {
      const read = await readAll(subject, BYTES[size])
      assert.equal(read.size, expected.size, 'a flood arrives with its length.')
      assert.equal(read.sha256, expected.sha256, 'a flood arrives byte for byte.')
    })
    for (const [role, bytes] of Object.entries(growth)) {
      assert.ok(bytes <= GROWTH_BYTES, `${role} stays flat while a flood passes; it grew by ${(bytes / MIB).toFixed(1)} MiB.`)
    }
  },
  defects: {
    'the last part is lost': { breaks: changing((parts) => shortened(parts)), says: /a flood arrives with its length/ },
    'two bytes change places': { breaks: changing((parts) => swapped(parts)), says: /a flood arrives byte for byte/ },
    'a hop keeps a copy': {
      breaks: (real) => ({ ...real, growthDuring: async (action) => ({ ...(await real.growthDuring(action)), 'guest-agent': GROWTH_BYTES + 1 }) }),
      says: /guest-agent stays flat while a flood passes/,
    },
  },
})

async function* toAsync(parts: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* parts
}

function changing(change: (parts: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>): (real: Flooded) => Flooded {
  return (real) => ({
    ...real,
    sandbox: {
      ...real.sandbox,
      async spawn(command) {
        const running = await real.sandbox.spawn(command)
        return { ...running, stdout: change(running.stdout) }
      },
    },
  })
}

async function* shortened(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array | undefined
  for await (const part of parts) {
    if (held !== undefined) yield held
    held = part
  }
}

async function* swapped(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let done = false
  for await (const part of parts) {
    const changed = Uint8Array.from(part)
    if (!done && changed.byteLength > 2) changed.subarray(0, 2).reverse()
    done = true
    yield changed
  }
}
