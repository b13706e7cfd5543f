/** The command line on a terminal of its own (util-linux `script`): typed at, read, left. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { until, within } from '../bounds.ts'
import { COMMAND, type Installation } from '../installation.ts'

const SHOWS_MS = 30_000
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

export class TerminalOfItsOwn implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #end: Promise<number | null>
  /** Everything that came on the screen. */
  screen = ''

  constructor(installation: Installation, args: readonly string[]) {
    const line = [...COMMAND, ...args].map(quoted).join(' ')
    this.#child = spawn('script', ['--quiet', '--flush', '--return', '--command', `stty cols 100 rows 30; exec ${line}`, '/dev/null'], {
      env: { ...installation.env, TERM: 'xterm' },
      stdio: 'pipe',
    })
    this.#child.stdout.on('data', (chunk: Buffer) => {
      this.screen += chunk.toString('utf8')
    })
    this.#child.stdin.on('error', () => undefined)
    this.#end = new Promise((resolve, reject) => {
      this.#child.once('error', reject)
      this.#child.once('close', resolve)
    })
  }

  type(text: string): void {
    this.#child.stdin.write(text)
  }

  async shows(expected: RegExp): Promise<RegExpExecArray> {
    return until(SHOWS_MS, `${expected} on the terminal`, () => expected.exec(this.screen) ?? undefined)
  }

  ended(): Promise<number | null> {
    return within(SHOWS_MS, 'the end of the command on the terminal', this.#end)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#end
  }
}
