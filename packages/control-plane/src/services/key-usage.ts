/** When keys were last used, to the minute: noted in memory, written now and then, so that no request waits for it. */
import { touchApiKeys } from '../store/api-keys.ts'
import type { Database } from '../store/database.ts'

export class KeyUsage {
  readonly #db: Database
  #used = new Set<string>()

  constructor(db: Database) {
    this.#db = db
  }

  note(apiKeyId: string): void {
    this.#used.add(apiKeyId)
  }

  async flush(): Promise<void> {
    if (this.#used.size === 0) return
    const used = this.#used
    this.#used = new Set()
    await touchApiKeys(this.#db, [...used])
  }
}
