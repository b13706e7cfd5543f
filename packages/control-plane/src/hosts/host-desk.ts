/**
 * Which hosts' watches are open in this process, so that a start that was just committed here is written at once, from what its transaction read.
 * Only a shortcut: what is not handed over, or lost on the way, is due in the tables and found by the watch's next look.
 */
import type { DueOrder } from '../store/hosts.ts'
import type { World } from '../world.ts'

type Take = (order: DueOrder) => void

export class HostDesk {
  readonly #open = new Map<string, Set<Take>>()
  readonly #hint: World['hint']

  constructor(hint: World['hint'] = (deliver) => deliver()) {
    this.#hint = hint
  }

  /** @returns takes the watch off again */
  open(hostId: string, take: Take): () => void {
    const watches = this.#open.get(hostId) ?? new Set()
    this.#open.set(hostId, watches)
    watches.add(take)
    return () => {
      watches.delete(take)
      if (watches.size === 0 && this.#open.get(hostId) === watches) this.#open.delete(hostId)
    }
  }

  watches(hostId: string): boolean {
    return this.#open.has(hostId)
  }

  /** Once the transaction that made it due is committed. */
  hand(hostId: string, order: DueOrder): void {
    this.#hint(() => {
      for (const take of this.#open.get(hostId) ?? []) take(order)
    }, 'start')
  }
}
