/** TE2: size 0×0, resize not passed on. */
import assert from 'node:assert/strict'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { refused } from '../subject/coded.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'
import { Screen } from '../subject/screen.ts'

/** A shell without line editing, so that one column is no trouble. */
const SHELL = ['/bin/sh']
const TOO_SMALL_OR_LARGE = [
  [0, 24],
  [80, 0],
  [65_535, 24],
  [80, 65_535],
] as const

type Typed = { write(text: string): Promise<void> }

/** A resize and what is typed travel apart, so the size is asked for until it is the expected one, or stays another. */
async function sizeNow(screen: Screen, terminal: Typed, tag: string, expected: string): Promise<void> {
  let seen = ''
  let turn = 0
  await until(15_000, `the size at ${tag}`, async () => {
    turn += 1
    await terminal.write(`echo ${tag}-${turn}=$(stty size)=\n`)
    await screen.shows(new RegExp(`${tag}-${turn}=\\d+ \\d+=`), 20_000)
    seen = new RegExp(`${tag}-${turn}=(\\d+ \\d+)=`).exec(screen.text)?.[1] ?? ''
    return seen === expected
  }).catch(() => assert.equal(seen, expected, `the size at ${tag}`))
}

/** The very first command sees the size, with no second chance. */
async function firstSize(sandbox: Sandboxed): Promise<void> {
  const terminal = await must('opening a terminal', sandbox.terminal({ cols: 97, rows: 31, argv: ['stty', 'size'] }))
  const screen = new Screen(terminal)
  await screen.shows(/\d+ \d+/, 20_000)
  assert.equal(screen.text.trim(), '31 97', 'the size at the first byte')
}

defineCase<Sandboxed>({
  id: 'TE2',
  title: 'the size is right before the first byte, and every resize arrives',
  subject: sandboxed,
  async run(sandbox, size) {
    await firstSize(sandbox)
    const terminal = await must('opening a terminal', sandbox.terminal({ cols: 97, rows: 31, argv: SHELL }))
    const screen = new Screen(terminal)
    await sizeNow(screen, terminal, 'first', '31 97')
    await terminal.resize(100, 40)
    await sizeNow(screen, terminal, 'resized', '40 100')
    for (let turn = 0; turn < (size === 'full' ? 300 : 30); turn += 1) await terminal.resize(20 + (turn % 180), 10 + (turn % 50))
    await terminal.resize(111, 55)
    await sizeNow(screen, terminal, 'storm', '55 111')
    await terminal.resize(1, 1)
    await sizeNow(screen, terminal, 'smallest', '1 1')
    await terminal.resize(1_000, 1_000)
    await sizeNow(screen, terminal, 'largest', '1000 1000')
    await terminal.detach()
    await must('resizing while detached', sandbox.resizeProcess(terminal.id, 66, 22))
    const again = await must('coming back', sandbox.terminal({ id: terminal.id, since: screen.end }))
    const later = new Screen(again)
    await sizeNow(later, again, 'detached', '22 66')
    for (const [cols, rows] of TOO_SMALL_OR_LARGE) {
      const what = `a terminal of ${cols} columns and ${rows} rows`
      await within(
        20_000,
        `the refusal of ${what}`,
        refused(what, ['invalid_request', 'malformed_frame', 'limit_exceeded'], sandbox.terminal({ cols, rows, argv: SHELL })),
      )
    }
    for (const [cols, rows] of TOO_SMALL_OR_LARGE) {
      const what = `a resize to ${cols} columns and ${rows} rows`
      await refused(what, ['invalid_request', 'malformed_frame', 'limit_exceeded'], sandbox.resizeProcess(terminal.id, cols, rows))
    }
    await sizeNow(later, again, 'still', '22 66')
    await again.write('exit\n')
    await within(20_000, 'the end of the terminal', later.done)
  },
  defects: {
    'the size comes only after the shell has started': {
      breaks: (real) => ({
        ...real,
        terminal: (options) => real.terminal(options.id === undefined && options.cols === 97 ? { ...options, cols: 80, rows: 24 } : options),
      }),
      says: /the size at the first byte/,
    },
    'a resize is not passed on': {
      breaks: (real) => ({ ...real, terminal: async (options) => ({ ...(await real.terminal(options)), resize: async () => {} }) }),
      says: /the size at resized/,
    },
    'the last resize of a storm is lost': {
      breaks: (real) => ({
        ...real,
        async terminal(options) {
          const terminal = await real.terminal(options)
          let count = 0
          return {
            ...terminal,
            async resize(cols, rows) {
              count += 1
              if (count <= 30) await terminal.resize(cols, rows)
            },
          }
        },
      }),
      says: /the size at storm/,
    },
    'a resize while detached is dropped': {
      breaks: (real) => ({ ...real, resizeProcess: async () => {} }),
      says: /the size at detached/,
    },
    'coming back sets a default size': {
      breaks: (real) => ({
        ...real,
        async terminal(options) {
          const terminal = await real.terminal(options)
          if (options.id !== undefined) await real.resizeProcess(options.id, 80, 24)
          return terminal
        },
      }),
      says: /the size at detached/,
    },
    'a terminal without columns is opened': {
      breaks: (real) => ({
        ...real,
        terminal: (options) => real.terminal(options.cols === undefined ? options : { ...options, cols: Math.max(1, options.cols ?? 80) }),
      }),
      says: /a terminal of 0 columns and 24 rows succeeded/,
    },
  },
})
