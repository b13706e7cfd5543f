/** Ctrl-C and its relatives: the first asks for an orderly end, the third ends this process where it stands. */
import { exitCodeOfSignal } from './exit-code.ts'
import type { Io } from './io.ts'

export type SignalWord = 'INT' | 'TERM' | 'HUP'

/** The reason of an abort that a signal asked for. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly signal: SignalWord

  constructor(signal: SignalWord) {
    super(`interrupted by SIG${signal}`)
    this.signal = signal
  }

  get exitCode(): number {
    return exitCodeOfSignal(this.signal)
  }
}

const LAST_WARNING = 3

/** Aborts at the first signal. */
export class Interrupt implements Disposable {
  readonly #controller = new AbortController()
  readonly #stop: () => void
  #count = 0

  constructor(io: Io) {
    this.#stop = io.onSignal((signal) => {
      this.#count += 1
      if (this.#count >= LAST_WARNING) process.exit(exitCodeOfSignal(signal))
      this.#controller.abort(new Interrupted(signal))
    })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  [Symbol.dispose](): void {
    this.#stop()
  }
}
