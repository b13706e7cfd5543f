/** A page of a terminal that is drawn again and again, on the alternate screen, so that what was there before comes back. */
import type { Io } from './io.ts'

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

export class LiveScreen implements AsyncDisposable {
  readonly #io: Io

  private constructor(io: Io) {
    this.#io = io
  }

  static async open(io: Io): Promise<LiveScreen> {
    await io.stdout.write(ENTER)
    return new LiveScreen(io)
  }

  /** Lines that do not fit are cut off. */
  async draw(lines: readonly string[]): Promise<void> {
    const { cols, rows } = this.#io.size()
    const shown = lines.slice(0, rows).map((line) => `${[...line].slice(0, cols).join('')}${CLEAR_LINE}`)
    await this.#io.stdout.write(`${HOME}${shown.join('\r\n')}${CLEAR_BELOW}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#io.stdout.write(LEAVE)
  }
}
