/**
 * What the product has acknowledged, kept outside of it: the yardstick of every crash test.
 *
 * A write that was answered is owed. A write whose answer was lost may have happened or not; both are right, nothing else is.
 */
import { createHash } from 'node:crypto'

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** What one file may hold. */
export type Expectation = {
  /** Of the last acknowledged content; absent when nothing was acknowledged yet. */
  acknowledged: string | undefined
  /** Of later contents whose answer did not come. */
  possible: Set<string>
}

export class Ledger {
  /** Idempotency key → the sandbox that was answered. */
  readonly creates = new Map<string, string>()
  /** Keys that were sent; the answer may have been lost. */
  readonly asked = new Set<string>()
  readonly deleteAsked = new Set<string>()
  readonly deleteAcknowledged = new Set<string>()
  readonly files = new Map<string, Map<string, Expectation>>()
  /** Per sandbox: process keys of acknowledged commands that leave a line behind. */
  readonly effects = new Map<string, Set<string>>()
  /** What was wrong already while the load ran. */
  readonly faults: string[] = []
  operations = 0

  fault(text: string): void {
    this.faults.push(text)
  }

  created(key: string, id: string): void {
    const before = this.creates.get(key)
    if (before !== undefined && before !== id) this.fault(`the key ${key} answered ${id} after it had answered ${before}`)
    this.creates.set(key, id)
    this.operations += 1
  }

  #expectation(id: string, path: string): Expectation {
    const files = this.files.get(id) ?? new Map<string, Expectation>()
    this.files.set(id, files)
    const known = files.get(path) ?? { acknowledged: undefined, possible: new Set<string>() }
    files.set(path, known)
    return known
  }

  writing(id: string, path: string, content: Uint8Array): void {
    this.#expectation(id, path).possible.add(sha256(content))
  }

  written(id: string, path: string, content: Uint8Array): void {
    const expectation = this.#expectation(id, path)
    expectation.acknowledged = sha256(content)
    expectation.possible.clear()
    this.operations += 1
  }

  ran(id: string, processKey: string): void {
    const effects = this.effects.get(id) ?? new Set<string>()
    effects.add(processKey)
    this.effects.set(id, effects)
    this.operations += 1
  }

  deleted(id: string): void {
    this.deleteAcknowledged.add(id)
    this.operations += 1
  }
}
