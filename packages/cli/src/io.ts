/** What a command uses of this process. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { ReadStream as TerminalInput } from 'node:tty'
import { OutputPipe } from './output-pipe.ts'
import { lastArguments } from './raw-arguments.ts'

export type TerminalSize = { readonly cols: number; readonly rows: number }

export type Io = {
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: OutputPipe
  readonly stderr: OutputPipe
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The exact bytes of the last `count` arguments of this process; JavaScript's strings cannot hold names that are not UTF-8. */
  lastArguments(count: number): readonly Uint8Array[]
  readonly now: () => number
  /** Is the input a terminal? */
  readonly inputIsTerminal: boolean
  readonly outputIsTerminal: boolean
  /** Is standard error a terminal? */
  readonly errorIsTerminal: boolean
  /** May escape codes be printed? Only to a terminal, and not where NO_COLOR is set. */
  readonly color: boolean
  /** Keys one by one, nothing interpreted here; the answer restores the terminal. */
  rawInput(): () => void
  /** Nothing is added to what is printed; the answer restores the terminal. */
  rawOutput(): () => void
  size(): TerminalSize
  /** Calls back when the terminal changes its size; the answer stops it. */
  onResize(listener: () => void): () => void
  /** Calls back instead of ending this process; the answer stops it. */
  onSignal(listener: (signal: 'INT' | 'TERM' | 'HUP') => void): () => void
  /** Nothing more is read from standard input. */
  closeInput(): void
}

const DEFAULT_SIZE: TerminalSize = { cols: 80, rows: 24 }
const MAX_CELLS = 1_000

function clamped(value: number | undefined, fallback: number): number {
  return value === undefined || value < 1 ? fallback : Math.min(value, MAX_CELLS)
}

/** Reading starts only when somebody reads: a command that takes no input must not swallow what is meant for the next one. */
async function* standardInput(): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of process.stdin) {
    const bytes: unknown = chunk
    if (bytes instanceof Uint8Array) yield bytes
  }
}

function terminalInput(): TerminalInput | undefined {
  return process.stdin.isTTY ? process.stdin : undefined
}

/** The other side has a terminal of its own that adds a carriage return to each newline; a second one here would add another. */
function setTerminal(mode: 'opost' | '-opost'): void {
  spawnSync('stty', [mode], { stdio: ['inherit', 'ignore', 'ignore'] })
}

export function processIo(): Io {
  const outputIsTerminal = process.stdout.isTTY === true
  return {
    stdin: { [Symbol.asyncIterator]: standardInput },
    stdout: new OutputPipe(process.stdout),
    stderr: new OutputPipe(process.stderr),
    environment: process.env,
    lastArguments: (count) => lastArguments(readFileSync('/proc/self/cmdline'), count),
    now: () => Date.now(),
    inputIsTerminal: process.stdin.isTTY === true,
    outputIsTerminal,
    errorIsTerminal: process.stderr.isTTY === true && process.env['TERM'] !== 'dumb',
    color: outputIsTerminal && (process.env['NO_COLOR'] ?? '') === '' && process.env['TERM'] !== 'dumb',
    rawInput() {
      const input = terminalInput()
      if (input === undefined) return () => undefined
      input.setRawMode(true)
      // Node.js leaves output as it is; the end of raw mode restores both.
      setTerminal('-opost')
      return () => input.setRawMode(false)
    },
    rawOutput() {
      if (!outputIsTerminal || terminalInput() === undefined) return () => undefined
      setTerminal('-opost')
      return () => setTerminal('opost')
    },
    size: () => ({ cols: clamped(process.stdout.columns, DEFAULT_SIZE.cols), rows: clamped(process.stdout.rows, DEFAULT_SIZE.rows) }),
    onResize(listener) {
      process.stdout.on('resize', listener)
      return () => process.stdout.off('resize', listener)
    },
    onSignal(listener) {
      const stops = (['INT', 'TERM', 'HUP'] as const).map((name) => {
        const handler = () => listener(name)
        process.on(`SIG${name}`, handler)
        return () => process.off(`SIG${name}`, handler)
      })
      return () => {
        for (const stop of stops) stop()
      }
    },
    closeInput() {
      process.stdin.destroy()
    },
  }
}
