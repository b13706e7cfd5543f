/** A terminal of either side: what is typed, and what comes back. */
import type { Terminal } from '@sandglass/sdk'
import { within } from '../../tests/e2e/bounds.ts'
import type { SshShell } from './openssh.ts'

const TAIL_CHARACTERS = 256
const EXPECT_MS = 60_000

export const PROMPT = 'bench> '
/** The same shell on both sides; a dumb terminal, so that nothing but what is typed and the prompt comes back. */
export const SHELL = ['/usr/bin/env', '-i', 'PATH=/usr/bin:/bin', 'TERM=dumb', `PS1=${PROMPT}`, '/bin/bash', '--norc', '--noprofile', '-i']

type Write = (text: string) => Promise<void>

export class Line {
  readonly #write: Write
  readonly #close: () => Promise<void>
  #bytes = 0
  #tail = ''
  #wanted: { readonly text: string; readonly found: () => void } | undefined

  private constructor(write: Write, close: () => Promise<void>) {
    this.#write = write
    this.#close = close
  }

  static ofTerminal(terminal: Terminal): Line {
    const line = new Line(
      (text) => terminal.write(text),
      () => terminal.close(),
    )
    const read = async (): Promise<void> => {
      for await (const chunk of terminal.output) line.#take(chunk)
    }
    // Its end shows as an expectation that is not met.
    read().catch(() => undefined)
    return line
  }

  static ofSsh(shell: SshShell): Line {
    const line = new Line(
      async (text) => void shell.stdin.write(text),
      async () => void shell.kill('SIGKILL'),
    )
    shell.stdout.on('data', (chunk: Buffer) => line.#take(chunk))
    return line
  }

  /** Bytes that have come so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Types, and waits until the text comes back after it. @returns milliseconds */
  async typed(keys: string, expected: string): Promise<number> {
    this.#tail = ''
    const found = new Promise<void>((resolve) => {
      this.#wanted = { text: expected, found: resolve }
    })
    const began = performance.now()
    await this.#write(keys)
    await within(EXPECT_MS, `${JSON.stringify(expected)} in the terminal`, found)
    return performance.now() - began
  }

  close(): Promise<void> {
    return this.#close()
  }

  #take(chunk: Uint8Array): void {
    this.#bytes += chunk.byteLength
    this.#tail = (this.#tail + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')).slice(-TAIL_CHARACTERS - chunk.byteLength)
    const wanted = this.#wanted
    if (wanted?.text !== undefined && this.#tail.includes(wanted.text)) {
      this.#wanted = undefined
      wanted.found()
    }
    this.#tail = this.#tail.slice(-TAIL_CHARACTERS)
  }
}
