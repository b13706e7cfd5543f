/** EX8: invalid UTF-8 kills the stream; characters are split across chunks. */
import assert from 'node:assert/strict'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { collect, sha256, text, utf8 } from '../subject/bytes.ts'
import { ask, assertSameBytes } from '../subject/inside.ts'
import type { Running, Sandboxed } from '../subject/sandboxed.ts'

const LINE = '日本語🤣é\n'

function repeated(size: number): Uint8Array {
  const line = Buffer.from(LINE, 'utf8')
  return Buffer.alloc(size, line)
}

/** Every way to get output: the answer of exec, the stream of spawn, and the replay of a finished process. */
async function everyWay(sandbox: Sandboxed, argv: readonly string[], check: (bytes: Uint8Array, way: string) => void): Promise<void> {
  check((await must('exec', sandbox.exec({ argv, timeoutMs: 60_000 }))).stdout, 'exec')
  const running = await must('spawn', sandbox.spawn({ argv }))
  const [bytes] = await within(60_000, 'the stream', Promise.all([collect(running.stdout), collect(running.stderr), running.exit]))
  check(bytes, 'spawn')
  if (bytes.byteLength <= 1024 * 1024) check(await must('replay', sandbox.output(running.id, 'stdout', 0)), 'replay')
}

/** Wraps chunks of a stream as a client does that decodes them. */
async function* mapped(chunks: AsyncIterable<Uint8Array>, change: (chunk: Uint8Array) => Uint8Array): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) yield change(chunk)
}

const asText = (bytes: Uint8Array): Uint8Array => utf8(text(bytes))

/** Splits a stream at odd places, then decodes each part by itself. */
async function* decodedApart(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) for (let at = 0; at < chunk.byteLength; at += 1_021) yield asText(chunk.subarray(at, at + 1_021))
}

defineCase<Sandboxed>({
  id: 'EX8',
  title: 'output is bytes: characters over chunk borders, and bytes that are no characters',
  subject: sandboxed,
  async run(sandbox, size) {
    const length = size === 'full' ? 1_000_003 : 10_003
    await everyWay(sandbox, ['sh', '-c', `yes '日本語🤣é' | head -c ${length}`], (bytes, way) => {
      assertSameBytes(bytes, repeated(length), `characters over chunk borders by ${way}`)
    })
    const noise = await ask(sandbox, { shell: 'head -c 65536 /dev/urandom > /tmp/noise; sha256sum < /tmp/noise' })
    await everyWay(sandbox, ['cat', '/tmp/noise'], (bytes, way) => assert.equal(sha256(bytes), noise.slice(0, 64), `random bytes by ${way}`))
    const long = await ask(sandbox, { shell: 'head -c 5000000 /dev/urandom > /tmp/long; sha256sum < /tmp/long' })
    await everyWay(sandbox, ['cat', '/tmp/long'], (bytes, way) => assert.equal(sha256(bytes), long.slice(0, 64), `more random bytes than a window by ${way}`))
  },
  defects: {
    'bad bytes become U+FFFD in answers': {
      breaks: (real) => ({
        ...real,
        async exec(command) {
          const outcome = await real.exec(command)
          return { ...outcome, stdout: asText(outcome.stdout) }
        },
      }),
      says: /random bytes by exec/,
    },
    'bad bytes become U+FFFD in streams': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          const running = await real.spawn(command)
          const decoded: Running = { ...running, stdout: mapped(running.stdout, asText) }
          return decoded
        },
      }),
      says: /random bytes by spawn|characters over chunk borders by spawn/,
    },
    'chunks are decoded one by one': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          const running = await real.spawn(command)
          const decoded: Running = { ...running, stdout: decodedApart(running.stdout) }
          return decoded
        },
      }),
      says: /characters over chunk borders by spawn/,
    },
    'replay skips a byte': {
      breaks: (real) => ({ ...real, output: async (id, stream, since) => (await real.output(id, stream, since)).subarray(1) }),
      says: /by replay/,
    },
  },
})
