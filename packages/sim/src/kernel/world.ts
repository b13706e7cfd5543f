/**
 * The world of one seed: its time, its chance, and everything that is going to happen in it. One event runs at a time; what it set off in promises has
 * come to rest before the next one is taken, so nothing but the seed decides what comes after what.
 */
import { type Actor, present } from './actor.ts'
import { real } from './globals.ts'
import { History } from './history.ts'
import { EventQueue } from './queue.ts'
import { Random } from './random.ts'

type Event = {
  readonly atMs: number
  readonly tie: number
  readonly actor: Actor | undefined
  readonly label: string
  readonly run: () => void
  cancelled: boolean
}

export type Scheduled = { cancel(): void }

/** Something that must never be. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

export class World {
  readonly random: Random
  readonly history = new History()
  readonly #queue = new EventQueue<Event>()
  readonly #ties: Random
  readonly #checks: (() => void)[] = []
  #nowMs = 0
  #violation: Violation | undefined

  constructor(seed: number) {
    this.random = new Random(seed, 1)
    this.#ties = new Random(seed, 2)
  }

  get nowMs(): number {
    return this.#nowMs
  }

  get violation(): Violation | undefined {
    return this.#violation
  }

  /** @param actor whose code it is; undefined: the world's own, which nobody can pause */
  at(delayMs: number, actor: Actor | undefined, label: string, run: () => void): Scheduled {
    const event: Event = { atMs: this.#nowMs + Math.max(0, delayMs), tie: this.#ties.next(), actor, label, run, cancelled: false }
    this.#queue.push(event)
    return {
      cancel: () => {
        event.cancelled = true
      },
    }
  }

  note(who: string, what: string): void {
    this.history.note(this.#nowMs, who, what)
  }

  /** Looked at after every event. */
  onStep(check: () => void): void {
    this.#checks.push(check)
  }

  /** The first one stands. */
  violate(sentence: string): void {
    if (this.#violation !== undefined) return
    this.note('world', `VIOLATION: ${sentence}`)
    this.#violation = new Violation(sentence)
  }

  /** Runs until it is so, the time is over, or something is violated. @returns whether it came to be so */
  async runUntil(untilMs: number, isSo: () => boolean = () => false): Promise<boolean> {
    await real.rest()
    while (this.#violation === undefined) {
      if (isSo()) return true
      const event = this.#queue.pop()
      if (event === undefined) return isSo()
      if (event.atMs > untilMs) {
        this.#queue.push(event)
        this.#nowMs = untilMs
        return isSo()
      }
      await this.#step(event)
    }
    return false
  }

  async #step({ atMs, actor, label, run, cancelled }: Event): Promise<void> {
    if (cancelled) return
    this.#nowMs = Math.max(this.#nowMs, atMs)
    if (actor !== undefined && !actor.alive) return
    if (actor?.paused === true) return actor.park({ label, run })
    try {
      present.run(actor, run)
    } catch (error) {
      this.violate(`${label} threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
    await real.rest()
    for (const check of this.#checks) check()
  }
}
