/**
 * One process of the simulation, from its start to its end: a control plane, a host agent, a client. Whatever it waits for (a timer, a disk, an answer) is
 * an event that belongs to it, so that stopping it stops everything that would go on in it: a dead process hears nothing more, a paused one hears it later.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clockwork } from './clockwork.ts'
import type { World } from './world.ts'

export type Parked = { readonly label: string; readonly run: () => void }

export class Actor {
  readonly name: string
  readonly world: World
  readonly clock: Clockwork
  readonly #ends: (() => void)[] = []
  #alive = true
  #paused = false
  #parked: Parked[] = []

  constructor(world: World, name: string, clock: Clockwork) {
    this.world = world
    this.name = name
    this.clock = clock
  }

  get alive(): boolean {
    return this.#alive
  }

  get paused(): boolean {
    return this.#paused
  }

  /** Told once, when it dies or is paused for the last time. */
  onEnd(listener: () => void): void {
    if (this.#alive) this.#ends.push(listener)
    else listener()
  }

  /** As `kill -9`. */
  die(): void {
    if (!this.#alive) return
    this.#alive = false
    this.#parked = []
    for (const end of this.#ends.splice(0)) end()
  }

  /** As SIGSTOP. */
  pause(): void {
    this.#paused = true
  }

  /** As SIGCONT: what came meanwhile is heard now, in an order of its own. */
  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    for (const { label, run } of this.#parked.splice(0)) this.world.at(this.world.random.between(0, 5), this, label, run)
  }

  park(event: Parked): void {
    this.#parked.push(event)
  }

  /** Runs code of this process. */
  run<T>(work: () => T): T {
    return present.run(this, work)
  }
}

/** Whose code runs now. It follows every promise and callback of that code. */
export const present = new AsyncLocalStorage<Actor | undefined>()

/** @throws Error outside of every process of the simulation */
export function presentActor(): Actor {
  const actor = present.getStore()
  if (actor === undefined) throw new Error('this code runs in no process of the simulation')
  return actor
}
