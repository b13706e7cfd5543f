/** EX11: a follower that reconnects gets a random prefix. */
import assert from 'node:assert/strict'
import { randomOf } from '../../failure/seed.ts'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { patterned } from '../subject/bytes.ts'
import { assertSameBytes } from '../subject/inside.ts'
import type { Printed, Sandboxed } from '../subject/sandboxed.ts'

const BYTES = 15_692
const RECONNECTS = { full: 50, small: 8 } as const
const SEED = 'ex11'
const LIMIT_MS = 60_000

/** Writes the bytes in uneven pieces, slowly enough that a follower comes back many times meanwhile. */
const WRITER = `import sys, time
with open('/tmp/bytes', 'rb') as file: content = file.read()
at = 0
while at < len(content):
    size = 1 + (at * 7919) % 613
    sys.stdout.buffer.write(content[at:at + size]); sys.stdout.buffer.flush()
    at += size
    time.sleep(0.03)
`

/** Reads up to a number of bytes from an offset and leaves. */
async function some(sandbox: Sandboxed, id: string, since: number, wanted: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  let next = since
  for await (const { offset, bytes } of sandbox.follow(id, 'stdout', since)) {
    assert.equal(offset, next, `a follower from ${since} goes on at ${next}, without a gap.`)
    next += bytes.byteLength
    size += bytes.byteLength
    chunks.push(bytes)
    if (size >= wanted) break
  }
  return Buffer.concat(chunks).subarray(0, wanted)
}

defineCase<Sandboxed>({
  id: 'EX11',
  title: `a follower that reconnects ${RECONNECTS.full} times at random offsets gets exactly the bytes from there`,
  subject: sandboxed,
  async run(sandbox, size) {
    const random = randomOf(SEED, size)
    const content = patterned(BYTES, 11)
    await must('uploading', sandbox.files.write('/tmp/bytes', content))
    const { id } = await must('starting the writer', sandbox.spawn({ argv: ['python3', '-c', WRITER] }))
    // While it writes: each reconnection goes on where the last one was left.
    const parts: Uint8Array[] = []
    let position = 0
    const step = Math.ceil(BYTES / RECONNECTS[size])
    while (position < BYTES) {
      const wanted = Math.min(1 + random.integer(2 * step), BYTES - position)
      const part = await must(`following from ${position}`, within(LIMIT_MS, `${wanted} bytes from ${position}`, some(sandbox, id, position, wanted)))
      assertSameBytes(part, content.subarray(position, position + part.byteLength), `a reconnection at ${position} while it is written`)
      parts.push(part)
      position += part.byteLength
    }
    assertSameBytes(Buffer.concat(parts), content, 'all reconnections together')
    // And at any offset, also behind the end of what was written.
    for (let reconnect = 0; reconnect < RECONNECTS[size]; reconnect += 1) {
      const since = random.integer(BYTES + 1)
      const rest = await must(`reading from ${since}`, within(LIMIT_MS, `the bytes from ${since}`, some(sandbox, id, since, BYTES + 1)))
      assertSameBytes(rest, content.subarray(since), `a reconnection at ${since} after the end`)
    }
  },
  defects: {
    'a follower begins again at the start': {
      breaks: (real) => ({
        ...real,
        async *follow(id, stream, since): AsyncGenerator<Printed> {
          for await (const { offset, bytes } of real.follow(id, stream, 0)) yield { offset: since + offset, bytes }
        },
      }),
      says: /a reconnection at \d+ while it is written/,
    },
    'a few bytes are skipped': {
      breaks: (real) => ({
        ...real,
        async *follow(id, stream, since): AsyncGenerator<Printed> {
          for await (const { offset, bytes } of real.follow(id, stream, since)) yield { offset, bytes: offset > 4_000 ? bytes.subarray(1) : bytes }
        },
      }),
      says: /a reconnection at \d+|goes on at/,
    },
    'the end is cut': {
      breaks: (real) => ({
        ...real,
        async *follow(id, stream, since): AsyncGenerator<Printed> {
          for await (const { offset, bytes } of real.follow(id, stream, since)) {
            // Only where nobody waits for more.
            const end = offset + bytes.byteLength
            yield { offset, bytes: end >= BYTES && bytes.byteLength > 1_000 ? bytes.subarray(0, -1) : bytes }
          }
        },
      }),
      says: /a reconnection at \d+ after the end/,
    },
  },
})
