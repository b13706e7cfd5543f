/** EX10: a start that failed stays "running" in the list. */
import assert from 'node:assert/strict'
import type { ErrorCode } from '@sandglass/contract'
import { must, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { Coded, codeOf, refused } from '../subject/coded.ts'
import type { Command, Sandboxed } from '../subject/sandboxed.ts'

const FAILING: readonly { readonly command: Command; readonly code: ErrorCode }[] = [
  { command: { argv: ['/no/such'] }, code: 'executable_not_found' },
  { command: { argv: ['no-such-program'] }, code: 'executable_not_found' },
  { command: { argv: [''] }, code: 'invalid_request' },
  { command: { argv: ['true'], cwd: '/no/such/place' }, code: 'cwd_not_found' },
  { command: { argv: ['true'], cwd: '/etc/passwd' }, code: 'cwd_not_found' },
  { command: { argv: ['/etc/passwd'] }, code: 'executable_not_runnable' },
  { command: { argv: ['/etc'] }, code: 'executable_not_runnable' },
  { command: { argv: ['true'], user: 'no-such-user' }, code: 'user_not_found' },
]

const named = ({ argv, cwd, user }: Command): string =>
  `starting ${JSON.stringify(argv)}${cwd === undefined ? '' : ` in ${cwd}`}${user === undefined ? '' : ` as ${user}`}`

defineCase<Sandboxed>({
  id: 'EX10',
  title: 'a start that fails is a typed error and nothing is listed',
  subject: sandboxed,
  async run(sandbox) {
    const before = (await sandbox.processes()).length
    for (const { command, code } of FAILING) {
      await within(20_000, `the refusal of ${named(command)}`, refused(named(command), code, sandbox.exec(command)))
      assert.deepEqual((await sandbox.processes()).slice(before), [], `nothing is listed after ${named(command)}.`)
      const streamed = (async () => (await sandbox.spawn(command)).exit)()
      await within(20_000, `the refusal of ${named(command)}, streamed`, refused(`${named(command)}, streamed,`, code, streamed))
      assert.deepEqual((await sandbox.processes()).slice(before), [], `nothing is listed after ${named(command)}, streamed.`)
    }
    const after = await must('a command after them', sandbox.exec({ argv: ['true'] }))
    assert.equal(after.exitCode, 0)
  },
  defects: {
    'the failed start stays in the list': {
      breaks: (real) => {
        const failed: string[] = []
        return {
          ...real,
          async exec(command) {
            try {
              return await real.exec(command)
            } catch (error) {
              failed.push(command.argv?.[0] ?? '')
              throw error
            }
          },
          processes: async () => [...(await real.processes()), ...failed.map((name) => ({ id: 'prfailed', argv: [name], state: 'running' as const, pid: 7 }))],
        }
      },
      says: /nothing is listed after starting \["\/no\/such"\]/,
    },
    'a failed start looks like a command that ended with 127': {
      breaks: (real) => ({
        ...real,
        async exec(command) {
          try {
            return await real.exec(command)
          } catch (error) {
            if (codeOf(error) !== 'executable_not_found') throw error
            return { processId: 'pr', exitCode: 127, signal: null, timedOut: false, outputOpen: false, stdout: new Uint8Array(), stderr: new Uint8Array() }
          }
        },
      }),
      says: /succeeded; it must be refused with executable_not_found/,
    },
    'every failure is one internal error': {
      breaks: (real) => ({
        ...real,
        exec: (command) =>
          real.exec(command).catch(() => {
            throw new Coded('internal')
          }),
      }),
      says: /failed with internal, not with executable_not_found/,
    },
    'a streamed start that failed never ends': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          try {
            return await real.spawn(command)
          } catch {
            throw new Coded('client_timeout')
          }
        },
      }),
      says: /streamed, failed with client_timeout/,
    },
  },
})
