/** EX2: a timeout that is ignored or only the client's, and commands after it that are dead. */
import assert from 'node:assert/strict'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { text, utf8 } from '../subject/bytes.ts'
import { Coded, refused } from '../subject/coded.ts'
import { processesInside } from '../subject/inside.ts'
import type { Command, Sandboxed } from '../subject/sandboxed.ts'

const NAPS: readonly Command[] = [
  { argv: ['sleep', '1000'], timeoutMs: 1_000 },
  { argv: ['sh', '-c', 'trap "" TERM; sleep 1000; sleep 1000'], timeoutMs: 1_000, killGraceMs: 200 },
  { shell: 'sleep 1000 | cat', timeoutMs: 1_000, killGraceMs: 200 },
]

async function endsInTime(sandbox: Sandboxed, command: Command): Promise<void> {
  const what = JSON.stringify(command.argv ?? command.shell)
  const began = performance.now()
  await within(20_000, `an answer for ${what} with a timeout of one second`, refused(what, 'process_timed_out', sandbox.exec(command)))
  assert.ok(performance.now() - began >= 900, `${what} was given its second.`)
  const running = (await must('listing processes', sandbox.processes())).filter((process) => process.state === 'running')
  assert.deepEqual(running, [], `the list shows nothing running after the timeout of ${what}.`)
  const left = (await processesInside(sandbox)).filter((process) => process.command.includes('sleep 1000'))
  assert.deepEqual(left, [], `nothing runs inside after the timeout of ${what}.`)
  const after = await must('the command after the timeout', within(20_000, 'the command after the timeout', sandbox.exec({ argv: ['echo', 'ok'] })))
  assert.equal(after.exitCode, 0)
  assert.equal(text(after.stdout), 'ok\n', 'the command after the timeout prints what it should')
}

defineCase<Sandboxed>({
  id: 'EX2',
  title: 'a timeout ends the command inside, and later commands work',
  subject: sandboxed,
  async run(sandbox, size) {
    for (const command of size === 'full' ? NAPS : NAPS.slice(0, 1)) await endsInTime(sandbox, command)
  },
  defects: {
    'the timeout is ignored': {
      breaks: (real) => ({ ...real, exec: (command) => real.exec(command.timeoutMs === 1_000 ? { argv: ['sleep', '2'] } : command) }),
      says: /succeeded; it must be refused with process_timed_out/,
    },
    'only the client gives up': {
      breaks: (real) => ({
        ...real,
        async exec(command) {
          if (command.timeoutMs !== 1_000) return real.exec(command)
          const { timeoutMs, ...forEver } = command
          const left = await real.spawn(forEver)
          await within(timeoutMs, 'an exit', left.exit).catch(() => undefined)
          throw new Coded('process_timed_out')
        },
      }),
      says: /the list shows nothing running/,
    },
    'the process lives on unlisted': {
      breaks: (real) => {
        const hidden = new Set<string>()
        return {
          ...real,
          async exec(command) {
            if (command.timeoutMs !== 1_000) return real.exec(command)
            const { timeoutMs, ...forEver } = command
            const left = await real.spawn(forEver)
            hidden.add(left.id)
            await within(timeoutMs, 'an exit', left.exit).catch(() => undefined)
            throw new Coded('process_timed_out')
          },
          processes: async () => (await real.processes()).filter((process) => !hidden.has(process.id)),
        }
      },
      says: /nothing runs inside after the timeout/,
    },
    'later commands are dead': {
      breaks: (real) => ({
        ...real,
        exec: async (command) => (command.argv?.[0] === 'echo' ? Promise.reject(new Coded('lost_contact')) : real.exec(command)),
      }),
      says: /the command after the timeout failed/,
    },
    'later commands print nothing': {
      breaks: (real) => ({
        ...real,
        exec: async (command) => (command.argv?.[0] === 'echo' ? { ...(await real.exec(command)), stdout: utf8('') } : real.exec(command)),
      }),
      says: /the command after the timeout prints what it should/,
    },
  },
})
