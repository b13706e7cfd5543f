/** Reads a terminal as it comes and waits for text on it. */
import { AssertionError } from 'node:assert'
import { until } from '../bounds.ts'
import { text } from './bytes.ts'
import type { Terminal } from './sandboxed.ts'

const KEPT_CHARACTERS = 2_000_000

export class Screen {
  /** What came, the oldest dropped. */
  text = ''
  /** Offset of the first byte that came. */
  begin: number | undefined
  /** Offset behind the last byte that came. */
  end = 0
  /** Resolves when the terminal ended or was left. */
  readonly done: Promise<void>

  constructor(terminal: Terminal) {
    this.done = (async () => {
      for await (const { offset, bytes } of terminal.output) {
        this.begin ??= offset
        this.end = offset + bytes.byteLength
        this.text = (this.text + text(bytes)).slice(-KEPT_CHARACTERS)
      }
    })()
    // Who waits for the end sees its error; others see what is on the screen.
    this.done.catch(() => undefined)
  }

  async shows(expected: RegExp, limitMs: number): Promise<void> {
    await until(limitMs, 'the text', () => expected.test(this.text)).catch(() => {
      throw new AssertionError({ message: `${expected} did not show within ${limitMs} ms; the end of the screen is ${JSON.stringify(this.text.slice(-300))}.` })
    })
  }
}
