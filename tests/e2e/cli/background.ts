/** A command that runs while a test looks at the machine. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { until, within } from '../bounds.ts'
import { COMMAND, type Installation } from '../installation.ts'

export class BackgroundCommand implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #end: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  stdout = ''
  stderr = ''

  constructor(installation: Installation, args: readonly string[]) {
    const [program, ...first] = COMMAND
    this.#child = spawn(program, [...first, ...args], { env: installation.env, stdio: 'pipe' })
    this.#child.stdout.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString('utf8')
    })
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString('utf8')
    })
    this.#child.stdin.on('error', () => undefined)
    this.#end = new Promise((resolve, reject) => {
      this.#child.once('error', reject)
      this.#child.once('close', (code, signal) => resolve({ code, signal }))
    })
  }

  /** Waits until standard output shows something. */
  async shows(expected: RegExp): Promise<void> {
    await until(60_000, `${expected} on standard output`, () => expected.test(this.stdout))
  }

  endInput(): void {
    this.#child.stdin.end()
  }

  interrupt(): void {
    this.#child.kill('SIGINT')
  }

  ended(limitMs = 60_000): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    return within(limitMs, 'the end of the command', this.#end)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#end
  }
}
