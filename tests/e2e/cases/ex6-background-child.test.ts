/** EX6: exec waits for a background child that holds the pipe. */
import assert from 'node:assert/strict'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { text } from '../subject/bytes.ts'
import { processesInside } from '../subject/inside.ts'
import type { Command, Sandboxed } from '../subject/sandboxed.ts'

type Left = { readonly command: Command; readonly stdout: string; readonly open: boolean; readonly child?: string }

const COMMANDS: readonly Left[] = [
  { command: { argv: ['sh', '-c', 'sleep 61 &'] }, stdout: '', open: true, child: 'sleep 61' },
  { command: { argv: ['sh', '-c', 'echo before; sleep 62 & exit 0'] }, stdout: 'before\n', open: true, child: 'sleep 62' },
  { command: { argv: ['sh', '-c', 'nohup sleep 63 &'] }, stdout: '', open: true, child: 'sleep 63' },
  { command: { argv: ['sh', '-c', 'nohup sleep 64 >/dev/null 2>&1 </dev/null &'] }, stdout: '', open: false, child: 'sleep 64' },
  { command: { argv: ['sh', '-c', 'setsid sleep 65 & echo started'] }, stdout: 'started\n', open: true, child: 'sleep 65' },
  { command: { argv: ['bash', '-ic', 'echo hi'] }, stdout: 'hi\n', open: false },
  { command: { shell: 'sleep 66 & echo hi' }, stdout: 'hi\n', open: true, child: 'sleep 66' },
]

async function comesBack(sandbox: Sandboxed, { command, stdout, open, child }: Left, limitMs: number): Promise<void> {
  const what = JSON.stringify(command.argv ?? command.shell)
  const outcome = await must(what, within(limitMs, `the answer of ${what}`, sandbox.exec(command)))
  assert.equal(outcome.exitCode, 0, `exit code of ${what}`)
  assert.equal(text(outcome.stdout), stdout, `standard output of ${what}`)
  assert.equal(outcome.outputOpen, open, `output_open of ${what}`)
  if (child === undefined) return
  assert.ok(
    (await processesInside(sandbox)).some((process) => process.command === child),
    `the background child of ${what} lives on.`,
  )
}

/** Output that the child writes after its leader is gone is still kept and can be read. */
async function lateOutput(sandbox: Sandboxed, limitMs: number): Promise<void> {
  const command = '(while [ ! -e /tmp/go ]; do sleep 0.05; done; echo late) & echo early'
  const outcome = await must('the leader', within(limitMs, 'the answer of a leader whose child writes later', sandbox.exec({ argv: ['sh', '-c', command] })))
  assert.equal(text(outcome.stdout), 'early\n')
  assert.equal(outcome.outputOpen, true, 'output_open while the child lives')
  await must('telling the child to go on', sandbox.exec({ argv: ['touch', '/tmp/go'] }))
  await until(limitMs, 'the late output can be read', async () => text(await sandbox.output(outcome.processId, 'stdout', 0)) === 'early\nlate\n')
}

defineCase<Sandboxed>({
  id: 'EX6',
  title: 'exec is back at the exit of the leader, and says when the output is still open',
  subject: sandboxed,
  async run(sandbox, size) {
    const limitMs = size === 'full' ? 20_000 : 15_000
    for (const left of COMMANDS) await comesBack(sandbox, left, limitMs)
    await lateOutput(sandbox, limitMs)
  },
  defects: {
    'exec waits for the child': {
      breaks: (real) => ({
        ...real,
        exec: (command) => real.exec(command.argv?.[2] === 'sleep 61 &' ? { ...command, argv: ['sh', '-c', 'sleep 61 & wait'], timeoutMs: 50_000 } : command),
      }),
      says: /the answer of .*sleep 61.* did not come within/,
    },
    'the child is killed with its leader': {
      breaks: (real) => ({
        ...real,
        async exec(command) {
          const outcome = await real.exec(command)
          if (command.argv?.[2] === 'sleep 61 &') await real.kill(outcome.processId, 'KILL')
          return outcome
        },
      }),
      says: /the background child of .*sleep 61.* lives on/,
    },
    'an open output is not told': {
      breaks: (real) => ({ ...real, exec: async (command) => ({ ...(await real.exec(command)), outputOpen: false }) }),
      says: /output_open of/,
    },
    'output of the child is dropped': {
      breaks: (real) => ({ ...real, output: async (id, stream, since) => (await real.output(id, stream, since)).subarray(0, 'early\n'.length) }),
      says: /the late output can be read/,
    },
  },
})
