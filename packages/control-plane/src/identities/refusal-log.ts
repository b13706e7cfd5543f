/**
 * Peers that were refused, in the audit log: the first of each kind at once, then its repetitions once a minute with their count. Anybody who reaches a
 * listener can be refused, so rows are bounded: past `refusalRowsPerMinute` what comes is counted, and told in one row when the minute is over.
 */
import { LIMITS } from '@sandglass/contract'
import { type Actor, audit } from '../store/audit-log.ts'
import type { Database } from '../store/database.ts'

export type Refusal = {
  readonly channel: 'control_plane' | 'join' | 'data_plane'
  readonly reason: string
  /** Not believed. */
  readonly claimed: string
  readonly address: string
}

const MINUTE_MS = 60_000
const UNKNOWN: Actor = { type: 'system', id: 'tls' }

type World = { readonly db: Pick<Database, 'transaction'>; readonly monotonicMs: () => number; readonly failed: (error: unknown) => void }

export class RefusalLog {
  readonly #world: World
  /** Seen in this minute, with what came behind the row. */
  #seen = new Map<string, { readonly refusal: Refusal; readonly actor: Actor; more: number }>()
  #beganMs = Number.NEGATIVE_INFINITY
  #rows = 0
  #suppressed = 0
  /** While something is only counted. */
  #minuteEnds: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(world: World) {
    this.#world = world
  }

  /** @param actor who refused; absent: this process */
  note(refusal: Refusal, count = 1, actor: Actor = UNKNOWN): void {
    if (this.#world.monotonicMs() - this.#beganMs >= MINUTE_MS) this.#turn()
    const key = `${actor.id} ${refusal.channel} ${refusal.reason} ${refusal.claimed} ${refusal.address}`
    const seen = this.#seen.get(key)
    if (seen !== undefined) seen.more += count
    else if (this.#rows >= LIMITS.refusalRowsPerMinute) this.#suppressed += count
    else {
      this.#seen.set(key, { refusal, actor, more: 0 })
      this.#write(refusal, count, actor)
      return
    }
    this.#minuteEnds ??= setTimeout(() => this.#turn(), MINUTE_MS)
  }

  /** Writes what was only counted. */
  async flush(): Promise<void> {
    this.#turn()
    await this.#writing
  }

  /** The next minute begins. */
  #turn(): void {
    clearTimeout(this.#minuteEnds)
    this.#minuteEnds = undefined
    const [seen, suppressed] = [this.#seen, this.#suppressed]
    this.#seen = new Map()
    this.#suppressed = 0
    this.#rows = 0
    this.#beganMs = this.#world.monotonicMs()
    for (const { refusal, actor, more } of seen.values()) if (more > 0) this.#write(refusal, more, actor)
    if (suppressed > 0) this.#write({ channel: 'control_plane', reason: 'various', claimed: 'various', address: 'various' }, suppressed, UNKNOWN)
  }

  #write({ channel, reason, claimed, address }: Refusal, count: number, actor: Actor): void {
    this.#rows += 1
    const entry = { tenantId: null, actor, action: 'peer.refused', subject: claimed === '' ? 'nobody' : claimed, detail: { channel, reason, address, count } }
    this.#writing = this.#writing.then(() => this.#world.db.transaction((tx) => audit(tx, entry))).catch(this.#world.failed)
  }
}
