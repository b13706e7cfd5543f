/** TE3: bytes lost between attach and replay; a dead holder blocks whoever takes over. */
import assert from 'node:assert/strict'
import { LIMITS } from '@sandglass/contract'
import { must, until, within } from '../bounds.ts'
import { defineCase, type Size } from '../case.ts'
import { text } from '../subject/bytes.ts'
import type { Printed, Sandboxed, Terminal } from '../subject/sandboxed.ts'
import { Screen } from '../subject/screen.ts'
import { type TerminalClients, terminalClients } from '../terminal-clients.ts'

const CYCLES = { full: 100, small: 6 } as const
const COUNTER = 'n=0; while :; do n=$((n+1)); echo $n; sleep 0.01; done'
const LIMIT_MS = 30_000
/** A small command of whoever takes over. */
const PROMPT_MS = 15_000
/** A client that is silent for this long is known to be dead; until then its part of a flood may be waited for. */
const DEAD_AFTER_MS = 3 * LIMITS.sessionHeartbeatMs
/** More than its credit and every buffer on the way. */
const FLOOD_BYTES = 8 * 1024 * 1024

/** Reads from an offset until something came, and leaves. */
async function visit(sandbox: Sandboxed, id: string, since: number): Promise<readonly Printed[]> {
  const terminal = await must('coming back', sandbox.terminal({ id, since }))
  const parts: Printed[] = []
  for await (const printed of terminal.output) {
    parts.push(printed)
    break
  }
  await terminal.detach()
  return parts
}

async function cycles({ sandbox }: TerminalClients, size: Size): Promise<void> {
  const first = await must('opening a terminal', sandbox.terminal({ cols: 80, rows: 24, argv: ['/bin/sh', '-c', COUNTER] }))
  await first.detach()
  let printed = ''
  let end = 0
  for (let cycle = 0; cycle < CYCLES[size]; cycle += 1) {
    for (const { offset, bytes } of await within(LIMIT_MS, `output in cycle ${cycle}`, visit(sandbox, first.id, end))) {
      assert.equal(offset, end, `cycle ${cycle} goes on where the one before ended.`)
      printed += text(bytes)
      end += bytes.byteLength
    }
  }
  const lines = printed.split('\r\n').slice(0, -1)
  assert.ok(lines.length >= CYCLES[size] / 2, 'the counter counts on while nobody looks.')
  assert.deepEqual(
    lines,
    lines.map((_, index) => String(index + 1)),
    'no line is lost or doubled between visits.',
  )
  await must('ending the counter', sandbox.kill(first.id, 'KILL'))
}

async function takeover({ sandbox, hold }: TerminalClients, size: Size): Promise<void> {
  const first = await must('opening a terminal', sandbox.terminal({ cols: 80, rows: 24, argv: ['/bin/bash', '--norc'] }))
  await first.detach()
  const holder = await must('holding it', hold(first.id))
  holder.type('mine=held')
  assert.equal(await must('the holder', holder.ask('$mine')), 'held')
  holder.partition()
  const next = await must('taking over', within(PROMPT_MS, 'a terminal whose holder is cut off', sandbox.terminal({ id: first.id })))
  const screen = new Screen(next)
  await next.write('echo "mine="$mine.\n')
  await screen.shows(/mine=held\./, PROMPT_MS)
  // The flood waits until the holder is known to be dead; self-checks do without.
  if (size === 'full') {
    await next.write(`yes | head -c ${FLOOD_BYTES}; echo flo""oded\n`)
    await screen.shows(/flooded/, DEAD_AFTER_MS + PROMPT_MS)
    await next.write('echo af""ter\n')
    await screen.shows(/after/, PROMPT_MS)
  }
  await next.write('exit\n')
  await within(LIMIT_MS, 'the end of the terminal', next.exit)
  await until(LIMIT_MS, 'the terminal is over', async () => (await sandbox.processes()).find(({ id }) => id === first.id)?.state !== 'running')
}

function withoutFirstByte(terminal: Terminal): Terminal {
  const output = async function* (): AsyncGenerator<Printed> {
    let isFirst = true
    for await (const { offset, bytes } of terminal.output) {
      yield { offset, bytes: isFirst ? bytes.subarray(1) : bytes }
      isFirst = false
    }
  }
  return { ...terminal, output: output() }
}

defineCase<TerminalClients>({
  id: 'TE3',
  title: `${CYCLES.full} visits to a terminal lose and repeat nothing, and a holder that is cut off keeps nobody out`,
  subject: terminalClients,
  async run(subject, size) {
    await cycles(subject, size)
    await takeover(subject, size)
  },
  defects: {
    'a byte is lost between visits': {
      breaks: (real) => ({
        ...real,
        sandbox: { ...real.sandbox, terminal: async (options) => withoutFirstByte(await real.sandbox.terminal(options)) },
      }),
      says: /no line is lost or doubled between visits/,
    },
    'coming back begins at a random place': {
      breaks: (real) => ({
        ...real,
        sandbox: { ...real.sandbox, terminal: ({ since, ...options }) => real.sandbox.terminal(since === undefined ? options : { ...options, since: 0 }) },
      }),
      says: /goes on where the one before ended/,
    },
    'a dead holder keeps others out': {
      breaks: (real) => {
        let held = false
        return {
          hold: async (id) => {
            held = true
            return real.hold(id)
          },
          sandbox: { ...real.sandbox, terminal: (options) => (held ? new Promise(() => {}) : real.sandbox.terminal(options)) },
        }
      },
      says: /a terminal whose holder is cut off did not come/,
    },
    'a dead holder keeps input from the program': {
      breaks: (real) => ({
        ...real,
        sandbox: {
          ...real.sandbox,
          async terminal(options) {
            const terminal = await real.sandbox.terminal(options)
            return options.since === undefined && options.id !== undefined ? { ...terminal, write: async () => {} } : terminal
          },
        },
      }),
      says: /mine=held.* did not show/,
    },
  },
})
