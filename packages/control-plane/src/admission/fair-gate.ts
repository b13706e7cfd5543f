/**
 * How many requests are worked on at once, fairly among groups (tenants).
 *
 * A group never has all places, so what comes from another one finds a free one or the next one; groups that wait take turns. A queue is bounded in
 * number and in time, and what finds no room is told `overloaded` at once instead of late. When all queues together are full, the longest one
 * gives up its youngest: a flood is refused before a single request is.
 */
import { CodedError } from '@sandglass/contract'

export type GateLimits = {
  readonly running: number
  readonly runningPerGroup: number
  readonly queued: number
  readonly queuedPerGroup: number
  readonly waitMs: number
}

/** A place; leaving twice is leaving once. */
export type Place = { leave(): void }

type Waiter = { readonly start: () => void; readonly refuse: (reason: CodedError) => void }

const RETRY_AFTER_SECONDS = 1

export class FairGate {
  readonly #limits: GateLimits
  readonly #timer: (ms: number, callback: () => void) => () => void
  readonly #runningOf = new Map<string, number>()
  /** In the order of turns: a group that got a place goes to the end. */
  readonly #queues = new Map<string, Set<Waiter>>()
  #running = 0
  #queued = 0

  /** @param timer calls back after `ms`; the answer cancels it */
  constructor(limits: GateLimits, timer: (ms: number, callback: () => void) => () => void) {
    this.#limits = limits
    this.#timer = timer
  }

  get counts(): { readonly running: number; readonly queued: number } {
    return { running: this.#running, queued: this.#queued }
  }

  /** @param gone aborted when nobody waits for the answer any more @throws CodedError `overloaded` */
  async enter(group: string, gone?: AbortSignal): Promise<Place> {
    if (!this.#queues.has(group) && this.#mayRun(group)) return this.#start(group)
    const queue = this.#queues.get(group) ?? new Set()
    this.#makeRoom(queue)
    const { promise, resolve, reject } = Promise.withResolvers<Place>()
    const settle = (): void => {
      cancel()
      gone?.removeEventListener('abort', leave)
      if (!queue.delete(waiter)) return
      this.#queued -= 1
      if (queue.size === 0) this.#queues.delete(group)
    }
    const waiter: Waiter = {
      start: () => {
        settle()
        resolve(this.#start(group))
      },
      refuse: (reason) => {
        settle()
        reject(reason)
      },
    }
    const leave = (): void => waiter.refuse(new CodedError('unavailable', 'The client went away.'))
    const cancel = this.#timer(this.#limits.waitMs, () => waiter.refuse(overloaded('apiQueueWaitMs', this.#limits.waitMs)))
    gone?.addEventListener('abort', leave, { once: true })
    this.#queues.set(group, queue)
    queue.add(waiter)
    this.#queued += 1
    return await promise
  }

  /** @throws CodedError `overloaded` */
  #makeRoom(queue: ReadonlySet<Waiter>): void {
    if (queue.size >= this.#limits.queuedPerGroup) throw overloaded('apiRequestsQueuedPerTenant', this.#limits.queuedPerGroup)
    if (this.#queued < this.#limits.queued) return
    const longest = [...this.#queues.values()].reduce((a, b) => (b.size > a.size ? b : a))
    const reason = overloaded('apiRequestsQueued', this.#limits.queued)
    if (longest.size <= queue.size + 1) throw reason
    ;[...longest].at(-1)?.refuse(reason)
  }

  #mayRun(group: string): boolean {
    return this.#running < this.#limits.running && (this.#runningOf.get(group) ?? 0) < this.#limits.runningPerGroup
  }

  #start(group: string): Place {
    this.#running += 1
    this.#runningOf.set(group, (this.#runningOf.get(group) ?? 0) + 1)
    let isHere = true
    return {
      leave: () => {
        if (!isHere) return
        isHere = false
        this.#running -= 1
        const left = (this.#runningOf.get(group) ?? 1) - 1
        if (left === 0) this.#runningOf.delete(group)
        else this.#runningOf.set(group, left)
        this.#next()
      },
    }
  }

  #next(): void {
    for (const [group, queue] of this.#queues) {
      const [first] = queue
      if (first === undefined || !this.#mayRun(group)) continue
      this.#queues.delete(group)
      if (queue.size > 1) this.#queues.set(group, queue)
      first.start()
      return
    }
  }
}

function overloaded(name: string, value: number): CodedError {
  return new CodedError('overloaded', 'More requests wait here than can be answered in time. Try again after `Retry-After`.', {
    limit: { name, value },
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}
