/** EX12: standard error mixed into standard output. */
import assert from 'node:assert/strict'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { collect, text } from '../subject/bytes.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

const ALTERNATE = 'for i in $(seq 200); do echo o$i; echo e$i >&2; done'
const lines = (letter: string): string => Array.from({ length: 200 }, (_, index) => `${letter}${index + 1}\n`).join('')

defineCase<Sandboxed>({
  id: 'EX12',
  title: 'standard output and standard error stay apart',
  subject: sandboxed,
  async run(sandbox) {
    const short = await must('two lines', sandbox.exec({ argv: ['sh', '-c', 'echo o; echo e >&2'] }))
    assert.equal(text(short.stdout), 'o\n', 'standard output holds what was written to it.')
    assert.equal(text(short.stderr), 'e\n', 'standard error holds what was written to it.')
    const only = await must('standard error alone', sandbox.exec({ argv: ['sh', '-c', 'echo e >&2; exit 3'] }))
    assert.deepEqual([text(only.stdout), text(only.stderr), only.exitCode], ['', 'e\n', 3])
    const running = await must('alternating', sandbox.spawn({ argv: ['sh', '-c', ALTERNATE] }))
    const [out, error] = await within(30_000, 'the streams', Promise.all([collect(running.stdout), collect(running.stderr), running.exit]))
    assert.equal(text(out), lines('o'), 'streamed standard output')
    assert.equal(text(error), lines('e'), 'streamed standard error')
    assert.equal(text(await must('replay', sandbox.output(running.id, 'stdout', 0))), lines('o'), 'replayed standard output')
    assert.equal(text(await must('replay', sandbox.output(running.id, 'stderr', 0))), lines('e'), 'replayed standard error')
  },
  defects: {
    'standard error is merged into standard output': {
      breaks: (real) => ({
        ...real,
        async exec(command) {
          const outcome = await real.exec(command)
          return { ...outcome, stdout: Buffer.concat([outcome.stdout, outcome.stderr]), stderr: new Uint8Array() }
        },
      }),
      says: /standard output holds what was written to it/,
    },
    'standard error is lost': {
      breaks: (real) => ({ ...real, exec: async (command) => ({ ...(await real.exec(command)), stderr: new Uint8Array() }) }),
      says: /standard error holds what was written to it/,
    },
    'streams are swapped when replayed': {
      breaks: (real) => ({ ...real, output: (id, stream, since) => real.output(id, stream === 'stdout' ? 'stderr' : 'stdout', since) }),
      says: /replayed standard output/,
    },
  },
})
