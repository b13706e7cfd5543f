/** TE4: closing a terminal while its program writes panics. */
import assert from 'node:assert/strict'
import { must, until, within } from '../bounds.ts'
import { defineCase, type Size } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import type { Sandboxed, Terminal } from '../subject/sandboxed.ts'
import { Screen } from '../subject/screen.ts'

const ROUNDS = { full: 12, small: 1 } as const
const LIMIT_MS = 20_000
const EXIT_MS = { full: 20_000, small: 15_000 } as const
/** Closes of each client. */
const TWICE = 2

async function closedByTwo(sandbox: Sandboxed, round: number, size: Size): Promise<void> {
  const first = await must('opening a terminal', sandbox.terminal({ cols: 80, rows: 24, argv: ['/bin/sh', '-c', 'trap "" HUP; exec yes'] }))
  const second = await must('coming to it', sandbox.terminal({ id: first.id }))
  const screens = [new Screen(first), new Screen(second)]
  for (const screen of screens) await screen.shows(/y\r\ny\r\ny/, LIMIT_MS)
  const close = (terminal: Terminal, who: string): Promise<void> => must(`closing by ${who} in round ${round}`, terminal.close())
  const closes = Array.from({ length: TWICE }, () => [close(first, 'the first client'), close(second, 'the second client')]).flat()
  await within(LIMIT_MS, 'the answers of four closes', Promise.all(closes))
  for (const [index, terminal] of [first, second].entries()) {
    const exit = await must(`the exit that client ${index} sees`, within(EXIT_MS[size], `the exit that client ${index} sees`, terminal.exit))
    assert.equal(exit.signal, 'KILL', 'a program that ignores the end of its line is ended all the same.')
  }
  await must('closing what is closed', first.close())
  const listed = (await must('listing processes', sandbox.processes())).find(({ id }) => id === first.id)
  assert.notEqual(listed?.state, 'running', 'a terminal that was closed is over.')
}

defineCase<Sandboxed>({
  id: 'TE4',
  title: 'a terminal is closed twice by two clients while its program writes, and nothing else notices',
  subject: sandboxed,
  async run(sandbox, size) {
    const other = await must('another terminal', sandbox.terminal({ cols: 80, rows: 24, argv: ['/bin/sh'] }))
    const screen = new Screen(other)
    for (let round = 0; round < ROUNDS[size]; round += 1) await closedByTwo(sandbox, round, size)
    await other.write('echo al""ive\n')
    await screen.shows(/alive/, LIMIT_MS)
    await until(LIMIT_MS, 'no writer is left', async () => (await sandbox.exec({ argv: ['pgrep', '-x', 'yes'] })).exitCode === 1)
    assert.equal((await must('a command afterwards', sandbox.exec({ argv: ['true'] }))).exitCode, 0)
    await must('closing the other', other.close())
  },
  defects: {
    'the second close is an error': {
      breaks: (real) => {
        const closed = new Set<string>()
        return {
          ...real,
          async terminal(options) {
            const terminal = await real.terminal(options)
            return {
              ...terminal,
              async close() {
                if (closed.has(terminal.id)) throw new Error('process_exited')
                closed.add(terminal.id)
                await terminal.close()
              },
            }
          },
        }
      },
      says: /closing by the .* client in round 0 failed/,
    },
    'closing while it writes takes the guest along': {
      breaks: (real) => {
        let dead = false
        return {
          ...real,
          async terminal(options) {
            const terminal = await real.terminal(options)
            return {
              ...terminal,
              async close() {
                await terminal.close()
                dead = true
              },
            }
          },
          exec: (command) => (dead ? Promise.reject(new Error('the guest is gone')) : real.exec(command)),
          processes: () => (dead ? Promise.reject(new Error('the guest is gone')) : real.processes()),
        }
      },
      says: /listing processes failed: the guest is gone/,
    },
    'close leaves the program running': {
      breaks: (real) => ({
        ...real,
        async terminal(options) {
          const terminal = await real.terminal(options)
          return { ...terminal, close: async () => {} }
        },
      }),
      says: /the exit that client 0 sees did not come/,
    },
  },
})
