/** LI10: the list says ready for a runtime that is gone. */
import assert from 'node:assert/strict'
import type { ErrorCode } from '@sandglass/contract'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { type Known, known } from '../known.ts'
import { refused } from '../subject/coded.ts'

const SEEN_MS = 5_000
const FAST_MS = 2_000
const FAILED: readonly ErrorCode[] = ['sandbox_failed']
/** What a call may be told that was on its way when the runtime was killed. */
const LOST: readonly ErrorCode[] = ['lost_contact', 'sandbox_failed', 'sandbox_not_ready', 'unavailable']

defineCase<Known>({
  id: 'LI10',
  title: 'a runtime that is killed behind the agent’s back is seen within seconds, its state says so, and calls fail fast',
  subject: known,
  async run({ sandbox, killRuntime, seen, listed, neighbour }) {
    await must('a file', sandbox.files.write('/tmp/file', new Uint8Array(10)))
    const open = refused('a call that was under way', LOST, sandbox.exec({ argv: ['sleep', '600'] }))
    open.catch(() => undefined)
    await until(20_000, 'the call is under way', async () => (await sandbox.processes()).some(({ argv }) => argv.includes('600')))
    killRuntime()
    await until(SEEN_MS, 'the killed runtime is seen', async () => (await seen()).status === 'failed')
    assert.equal((await listed()).status, 'failed', 'the list says what an inspection says.')
    const { reason } = await seen()
    assert.match(reason ?? '', /.{10,}/, 'the state says why.')
    await within(FAST_MS, 'the end of a call that was under way', open)
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      'a command': () => sandbox.exec({ argv: ['true'] }),
      'a background command': () => sandbox.spawn({ argv: ['true'] }),
      'reading a file': () => sandbox.files.read('/tmp/file'),
      'writing a file': () => sandbox.files.write('/tmp/other', new Uint8Array(10)),
      'listing processes': () => sandbox.processes(),
      'a terminal': () => sandbox.terminal({ cols: 80, rows: 24 }),
    }
    for (const [what, call] of Object.entries(calls)) await within(FAST_MS, `the refusal of ${what}`, refused(what, FAILED, call()))
    assert.equal((await must('a command of the neighbour', neighbour.exec({ argv: ['true'] }))).exitCode, 0, 'the neighbour notices nothing.')
  },
  defects: {
    'the list still says ready': {
      breaks: (real) => ({ ...real, listed: async () => ({ status: 'ready', reason: null }) }),
      says: /the list says what an inspection says/,
    },
    'the loss is not seen': {
      breaks: (real) => ({ ...real, seen: async () => ({ status: 'ready', reason: null }) }),
      says: /the killed runtime is seen: still not so/,
    },
    'the state does not say why': {
      breaks: (real) => ({ ...real, seen: async () => ({ ...(await real.seen()), reason: null }) }),
      says: /the state says why/,
    },
    'calls wait instead of failing': {
      breaks: (real) => ({
        ...real,
        sandbox: { ...real.sandbox, files: { ...real.sandbox.files, read: () => new Promise(() => {}) } },
      }),
      says: /the refusal of reading a file did not come/,
    },
    'a call succeeds on a runtime that is gone': {
      breaks: (real) => ({ ...real, sandbox: { ...real.sandbox, processes: () => real.sandbox.processes().catch(() => []) } }),
      says: /listing processes succeeded/,
    },
  },
})
