/** EX13: standard input over some forty MiB arrives short. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { collect, patternedStream, text } from '../subject/bytes.ts'
import type { Running, Sandboxed } from '../subject/sandboxed.ts'

const MIB = 1024 * 1024
const SIZE = { full: 48 * MIB, small: 3 * MIB } as const

/** Prints the size and the hash of what it reads. */
const COUNT =
  'import hashlib, sys\nh = hashlib.sha256(); n = 0\nwhile chunk := sys.stdin.buffer.read(65536):\n    h.update(chunk); n += len(chunk)\nprint(n, h.hexdigest())'

async function feed(sandbox: Sandboxed, argv: readonly string[], size: number): Promise<{ printed: string; sent: string }> {
  const running = await must(`starting ${argv[0]}`, sandbox.spawn({ argv }))
  const printed = collect(running.stdout)
  const hash = createHash('sha256')
  const pump = (async () => {
    for await (const chunk of patternedStream(size, size)) {
      hash.update(chunk)
      await running.write(chunk)
    }
    await running.end()
  })()
  await within(120_000, `taking ${size} bytes of input`, must('writing input', pump))
  const [output, exit] = await within(120_000, `the end of ${argv[0]}`, Promise.all([printed, running.exit]))
  assert.equal(exit.exitCode, 0)
  return { printed: text(output).trim(), sent: hash.digest('hex') }
}

/** Lets bytes pass until a limit and swallows the rest without a word. */
function cutAfter(running: Running, limit: number): Running {
  let passed = 0
  return {
    ...running,
    async write(bytes) {
      const left = bytes.subarray(0, Math.max(0, limit - passed))
      passed += bytes.byteLength
      if (left.byteLength > 0) await running.write(left)
    },
  }
}

defineCase<Sandboxed>({
  id: 'EX13',
  title: '48 MiB of standard input arrive whole, also at a reader that sleeps first',
  subject: sandboxed,
  timeoutMs: 400_000,
  async run(sandbox, size) {
    const bytes = SIZE[size]
    const counted = await feed(sandbox, ['wc', '-c'], bytes)
    assert.equal(counted.printed, String(bytes), 'wc counted what was sent.')
    const hashed = await feed(sandbox, ['python3', '-c', COUNT], bytes)
    assert.equal(hashed.printed, `${bytes} ${hashed.sent}`, 'every byte arrived as it was sent.')
    const slept = await feed(sandbox, ['sh', '-c', 'sleep 2; wc -c'], bytes)
    assert.equal(slept.printed, String(bytes), 'a reader that sleeps first counted what was sent.')
  },
  defects: {
    'input ends short': {
      breaks: (real) => ({ ...real, spawn: async (command) => cutAfter(await real.spawn(command), SIZE.small - 100_000) }),
      says: /wc counted what was sent/,
    },
    'input is doubled once': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          const running = await real.spawn(command)
          let first = true
          return {
            ...running,
            async write(bytes) {
              if (first) await running.write(bytes.subarray(0, 10))
              first = false
              await running.write(bytes)
            },
          }
        },
      }),
      says: /wc counted what was sent/,
    },
    'bytes change on the way': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          const running = await real.spawn(command)
          return { ...running, write: (bytes) => running.write(bytes.map((byte) => (byte === 0 ? 1 : byte))) }
        },
      }),
      says: /every byte arrived as it was sent/,
    },
    'a reader that sleeps first loses the beginning': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          const running = await real.spawn(command)
          return command.argv?.[0] === 'sh' ? cutAfter(running, SIZE.small / 2) : running
        },
      }),
      says: /a reader that sleeps first counted what was sent/,
    },
  },
})
