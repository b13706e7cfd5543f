/** TE1: a detached terminal stops draining and its program blocks. */
import assert from 'node:assert/strict'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { text, utf8 } from '../subject/bytes.ts'
import type { Printed, Sandboxed, Terminal } from '../subject/sandboxed.ts'
import { Screen } from '../subject/screen.ts'

const MIB = 1024 * 1024

async function exists(sandbox: Sandboxed, path: string): Promise<boolean> {
  return (await sandbox.exec({ argv: ['test', '-e', path] })).exitCode === 0
}

defineCase<Sandboxed>({
  id: 'TE1',
  title: 'a detached terminal keeps draining, and its last output is there on return',
  subject: sandboxed,
  timeoutMs: 400_000,
  async run(sandbox, size) {
    const length = size === 'full' ? 100 * MIB : 8 * MIB
    const limitMs = size === 'full' ? 180_000 : 40_000
    const first = await must('opening a terminal', sandbox.terminal({ cols: 80, rows: 24, argv: ['/bin/sh'] }))
    const screen = new Screen(first)
    await first.write('echo rea""dy\n')
    await screen.shows(/ready/, 20_000)
    await first.write(`yes | head -c ${length}; touch /tmp/done; echo fin""ished\n`)
    await screen.shows(/y\r\ny\r\ny/, 20_000)
    await first.detach()
    await until(limitMs, 'the detached program ran to its end', () => exists(sandbox, '/tmp/done'))

    const again = await must('coming back', sandbox.terminal({ id: first.id, since: screen.end }))
    assert.equal(again.id, first.id, 'it is the same terminal')
    const later = new Screen(again)
    await later.shows(/finished/, 20_000)
    const begin = later.begin ?? 0
    assert.ok(begin > screen.end, `what fell out of the ring is a gap, not silence (left at ${screen.end}, goes on at ${begin}).`)
    assert.ok(later.end - begin <= MIB + 64 * 1024, 'what was kept is bounded.')
    const tail = later.text.slice(0, later.text.indexOf('finished'))
    assert.equal(tail.replaceAll(/[y\r\n]/g, ''), '', 'what was kept is the tail of what was written')
    await again.write('echo al""ive\n')
    await later.shows(/alive/, 20_000)
    await again.write('exit\n')
    await within(20_000, 'the end of the terminal', later.done)
  },
  defects: {
    'a detached terminal stops draining': {
      breaks: (real) => {
        const stopping = async (terminal: Terminal): Promise<Terminal> => ({
          ...terminal,
          async detach() {
            await terminal.detach()
            await real.kill(terminal.id, 'STOP')
          },
        })
        return { ...real, terminal: async (options) => stopping(await real.terminal(options)) }
      },
      says: /the detached program ran to its end: still not so/,
    },
    'coming back gives another terminal': {
      breaks: (real) => ({ ...real, terminal: ({ id: _, since: __, ...fresh }) => real.terminal(fresh) }),
      says: /it is the same terminal/,
    },
    'lost output is not told': {
      breaks: (real) => ({
        ...real,
        async terminal(options) {
          const terminal = await real.terminal(options)
          const silent = async function* (): AsyncGenerator<Printed> {
            for await (const { bytes } of terminal.output) yield { offset: options.since ?? 0, bytes }
          }
          return options.id === undefined ? terminal : { ...terminal, output: silent() }
        },
      }),
      says: /what fell out of the ring is a gap/,
    },
    'the last output is lost': {
      breaks: (real) => ({
        ...real,
        async terminal(options) {
          const terminal = await real.terminal(options)
          if (options.id === undefined) return terminal
          const cut = async function* (): AsyncGenerator<Printed> {
            for await (const { offset, bytes } of terminal.output) yield { offset, bytes: utf8(text(bytes).replaceAll('finished', '')) }
          }
          return { ...terminal, output: cut() }
        },
      }),
      says: /\/finished\/ did not show/,
    },
  },
})
