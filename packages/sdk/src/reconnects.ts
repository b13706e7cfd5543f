/** When to connect again for a stream of answers that broke, and when to give up: the same for every such stream. */
import { SandglassError } from './error.ts'
import { isFinal, planReconnect } from './session-plan.ts'
import { sleep, type World } from './world.ts'

export class Reconnects {
  readonly #world: World
  readonly #budgetMs: number
  readonly #signal: AbortSignal | undefined
  #failures = 0
  #lostAt: number | undefined

  /** @param budgetMs for which lost contact is looked for */
  constructor(world: World, budgetMs: number, signal: AbortSignal | undefined) {
    this.#world = world
    this.#budgetMs = budgetMs
    this.#signal = signal
  }

  /** Contact is real. */
  heard(): void {
    this.#failures = 0
    this.#lostAt = undefined
  }

  /** Waits for the moment of the next attempt. @throws the signal's reason; the error itself when it is final, or nothing was heard for too long */
  async after(error: unknown): Promise<void> {
    this.#signal?.throwIfAborted()
    // What is no answer of the server is a connection that broke while its body was read.
    if (error instanceof SandglassError ? isFinal(error) : !(error instanceof TypeError)) throw error
    const { now, random } = this.#world
    this.#lostAt ??= now()
    const delayMs = planReconnect(this.#failures, now() - this.#lostAt, this.#budgetMs, random())
    if (delayMs === undefined) throw error instanceof SandglassError ? error : new SandglassError('lost_contact', undefined, { cause: error })
    this.#failures += 1
    const askedMs = error instanceof SandglassError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0
    await sleep(this.#world, Math.max(delayMs, askedMs), this.#signal)
  }
}
