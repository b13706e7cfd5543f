/**
 * Requests that wait for an operation to end. A commit in this process, or a notification from another, wakes them; one query for all of
 * them, now and then, stands behind it.
 */
import { LIMITS } from '@sandglass/contract'
import type { Database } from '../store/database.ts'
import { endedOperationsAmong } from '../store/operations.ts'
import type { SandboxRow } from '../store/sandboxes.ts'
import type { WakeBus } from './wake-bus.ts'

export type Expected = { readonly ended: Promise<SandboxRow | undefined>; readonly cancel: () => void }

export class OperationWaiters {
  readonly #db: Database
  readonly #waiting = new Map<string, Set<(sandbox?: SandboxRow) => void>>()
  #count = 0

  constructor(db: Database, bus: WakeBus) {
    this.#db = db
    bus.on('operation', (id, wake) => this.#wake(id, wake.sandbox))
  }

  get count(): number {
    return this.#count
  }

  /**
   * Call it before looking at the operation, so that an end in between is not missed.
   * @returns `ended` settles when the operation may have ended, the time is over or `cancel` was called, with the sandbox when it ended well by a commit of
   *   this process; undefined when too many wait already
   */
  expect(operationId: string, timeoutMs: number): Expected | undefined {
    if (this.#count >= LIMITS.operationWaiters) return undefined
    const { promise, resolve } = Promise.withResolvers<SandboxRow | undefined>()
    const waiters = this.#waiting.get(operationId) ?? new Set<(sandbox?: SandboxRow) => void>()
    this.#waiting.set(operationId, waiters)
    this.#count += 1
    const settle = (sandbox?: SandboxRow): void => {
      if (!waiters.delete(settle)) return
      this.#count -= 1
      if (waiters.size === 0) this.#waiting.delete(operationId)
      clearTimeout(timer)
      resolve(sandbox)
    }
    waiters.add(settle)
    const timer = setTimeout(() => settle(), timeoutMs)
    return { ended: promise, cancel: () => settle() }
  }

  /** Finds ends whose wake-up was lost. */
  async sweep(): Promise<void> {
    if (this.#waiting.size === 0) return
    for (const id of await endedOperationsAmong(this.#db, [...this.#waiting.keys()])) this.#wake(id)
  }

  /** Lets everyone go, for the end of the process. */
  releaseAll(): void {
    for (const id of [...this.#waiting.keys()]) this.#wake(id)
  }

  #wake(operationId: string, sandbox?: SandboxRow): void {
    for (const settle of [...(this.#waiting.get(operationId) ?? [])]) settle(sandbox)
  }
}
