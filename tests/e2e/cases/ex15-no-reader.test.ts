/**
 * EX15: a background command dies with its stream.
 *
 * What a reader's absence does depends on how much is written meanwhile, not on how long it lasts: each command here writes many times what
 * pipes, flow-control windows and the ring of kept output can hold together, with nobody attached.
 */
import assert from 'node:assert/strict'
import { LIMITS } from '@sandglass/contract'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

const MIB = 1024 * 1024
/** Ring 1 MiB, windows 1 MiB a hop, a pipe of 64 KiB: together below a fifth of the smaller one. */
const WRITTEN = { full: 256 * MIB, small: 24 * MIB } as const
const LINE_BYTES = 16
const LIMIT_MS = 120_000

/** Lines of 16 bytes that name their own place, and a mark at the end. */
const writer = (bytes: number): string =>
  `import sys
lines = ${bytes / LINE_BYTES}
for start in range(0, lines, 4096):
    sys.stdout.write(''.join('%015d\\n' % (16 * n) for n in range(start, min(lines, start + 4096))))
sys.stdout.flush()
open('/tmp/done', 'w').close()
sys.stdin.read()
`

type Kept = { readonly begin: number; readonly bytes: Uint8Array; readonly gaps: number }

/** Everything from an offset to the end. */
async function kept(sandbox: Sandboxed, id: string, since: number): Promise<Kept> {
  const chunks: Uint8Array[] = []
  let begin: number | undefined
  let next = since
  let gaps = 0
  for await (const { offset, bytes } of sandbox.follow(id, 'stdout', since)) {
    begin ??= offset
    if (offset !== next) gaps += 1
    next = offset + bytes.byteLength
    chunks.push(bytes)
  }
  return { begin: begin ?? next, bytes: Buffer.concat(chunks), gaps }
}

/** Each byte says where it stands, so a window is right or wrong by itself. */
function assertLines(bytes: Uint8Array, begin: number, what: string): void {
  const text = Buffer.from(bytes).toString('latin1')
  const first = (LINE_BYTES - (begin % LINE_BYTES)) % LINE_BYTES
  for (let at = first; at + LINE_BYTES <= text.length; at += LINE_BYTES) {
    const line = text.slice(at, at + LINE_BYTES)
    if (line !== `${String(begin + at).padStart(15, '0')}\n`) assert.fail(`${what}: at byte ${begin + at} stands ${JSON.stringify(line)}.`)
  }
}

defineCase<Sandboxed>({
  id: 'EX15',
  title: 'a command without a reader goes on, and what is kept of its output is there on return, with an explicit gap before it',
  subject: sandboxed,
  timeoutMs: 300_000,
  async run(sandbox, size) {
    const total = WRITTEN[size]
    const flood = await must('starting a flood', sandbox.spawn({ argv: ['python3', '-c', writer(total)] }))
    const little = await must(
      'starting a small writer',
      sandbox.spawn({ argv: ['python3', '-c', writer(LIMITS.outputWindowBytes / 2).replace('done', 'little')] }),
    )
    for (const running of [flood, little]) await must('leaving', running.detach())
    for (const file of ['done', 'little']) {
      await until(size === 'full' ? LIMIT_MS : 30_000, `the command without a reader wrote everything (${file})`, async () => {
        return (await sandbox.exec({ argv: ['test', '-e', `/tmp/${file}`] })).exitCode === 0
      })
    }
    const listed = await must('listing processes', sandbox.processes())
    for (const { id } of [flood, little]) {
      assert.equal(listed.find((process) => process.id === id)?.state, 'running', 'a command without a reader lives on.')
      await must('ending it', sandbox.kill(id, 'TERM'))
    }
    const whole = await must('coming back', within(LIMIT_MS, 'the output of the small writer', kept(sandbox, little.id, 0)))
    assert.deepEqual(
      [whole.begin, whole.gaps, whole.bytes.byteLength],
      [0, 0, LIMITS.outputWindowBytes / 2],
      'what fits the window is there from its first byte.',
    )
    assertLines(whole.bytes, 0, 'the output of the small writer')
    const tail = await must('coming back', within(LIMIT_MS, 'the output of the flood', kept(sandbox, flood.id, 0)))
    assert.equal(tail.gaps, 1, 'what is no longer kept is one explicit gap.')
    assert.equal(tail.begin + tail.bytes.byteLength, total, 'what is kept ends with the last byte that was written.')
    assert.equal(tail.bytes.byteLength, LIMITS.outputWindowBytes, 'what is kept is the stated window.')
    assertLines(tail.bytes, tail.begin, 'the output of the flood')
  },
  defects: {
    'a command blocks without a reader': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          const running = await real.spawn(command)
          return {
            ...running,
            async detach() {
              await real.kill(running.id, 'STOP')
              await running.detach()
            },
          }
        },
      }),
      says: /the command without a reader wrote everything \(done\): still not so/,
    },
    'a command dies with its stream': {
      breaks: (real) => ({
        ...real,
        processes: async () => (await real.processes()).map((process) => ({ ...process, state: 'exited' })),
      }),
      says: /a command without a reader lives on/,
    },
    'the gap is not told': {
      breaks: (real) => ({
        ...real,
        async *follow(id, stream, since) {
          let next = since
          for await (const { bytes } of real.follow(id, stream, since)) {
            yield { offset: next, bytes }
            next += bytes.byteLength
          }
        },
      }),
      says: /what is no longer kept is one explicit gap/,
    },
    'bytes of the window are lost': {
      breaks: (real) => ({
        ...real,
        async *follow(id, stream, since) {
          for await (const { offset, bytes } of real.follow(id, stream, since)) yield { offset, bytes: bytes.subarray(0, -1) }
        },
      }),
      says: /what fits the window is there from its first byte/,
    },
  },
})
