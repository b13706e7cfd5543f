/** EX10, the third input: the guest goes away between the acceptance of a command and its start. */
import assert from 'node:assert/strict'
import type { ErrorCode } from '@sandglass/contract'
import { until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { type Mortal, mortal } from '../fixture.ts'
import { codeOf, refused } from '../subject/coded.ts'

/** What a caller may be told of a sandbox that is gone; never a result that was made up. */
const GONE: readonly ErrorCode[] = ['lost_contact', 'sandbox_not_ready', 'sandbox_failed', 'sandbox_ended', 'unavailable', 'sandbox_not_found']
const PARALLEL = 8

defineCase<Mortal>({
  id: 'EX10',
  title: 'commands that were accepted when the guest died are typed errors, and the sandbox says that it is gone',
  subject: mortal,
  async run({ sandbox, killGuest, status }, size) {
    assert.equal((await sandbox.exec({ argv: ['true'] })).exitCode, 0)
    const commands = Array.from({ length: PARALLEL }, (_, index) => sandbox.exec({ argv: ['sh', '-c', `sleep 600; exit ${index}`] }))
    const settled = Promise.allSettled(commands)
    killGuest()
    for (const result of await within(120_000, 'an answer for each command whose guest died', settled)) {
      if (result.status === 'fulfilled') assert.fail(`a command of a guest that died ended with ${result.value.exitCode ?? result.value.signal}.`)
      const code = codeOf(result.reason)
      assert.ok(code !== undefined && GONE.includes(code), `a command of a guest that died failed with ${code ?? String(result.reason)}.`)
    }
    await until(size === 'full' ? 30_000 : 15_000, 'the sandbox says that it is not ready any more', async () => (await status()) !== 'ready')
    await within(20_000, 'the refusal of a command afterwards', refused('a command afterwards', GONE, sandbox.exec({ argv: ['true'] })))
  },
  defects: {
    'lost contact is taken for exit 0': {
      breaks: (real) => ({
        ...real,
        sandbox: {
          ...real.sandbox,
          exec: (command) =>
            real.sandbox.exec(command).catch(() => ({
              processId: 'pr',
              exitCode: 0,
              signal: null,
              timedOut: false,
              outputOpen: false,
              stdout: new Uint8Array(),
              stderr: new Uint8Array(),
            })),
        },
      }),
      says: /a command of a guest that died ended with 0/,
    },
    'commands of a dead guest fail without a code': {
      breaks: (real) => ({
        ...real,
        sandbox: {
          ...real.sandbox,
          exec: (command) => (command.argv?.[0] === 'sh' ? Promise.reject(new Error('socket hang up')) : real.sandbox.exec(command)),
        },
      }),
      says: /a command of a guest that died failed with Error: socket hang up/,
    },
    'the list still says ready': {
      breaks: (real) => ({ ...real, status: async () => 'ready' }),
      says: /the sandbox says that it is not ready any more: still not so/,
    },
  },
})
