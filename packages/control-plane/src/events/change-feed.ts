/**
 * The open streams of GET /v1/events in this process: who is told to look, and who has to go.
 *
 * A commit here, or a notification from another replica, wakes the sealer, and after it one query finds whose feed has grown. The streams then read
 * for themselves, at their own pace. Nothing here is needed for a reader to get everything: a stream looks again by itself where a wake-up was lost.
 */
import { CodedError, LIMITS } from '@sandglass/contract'
import { type Principal, validKeysAmong } from '../store/api-keys.ts'
import type { Database } from '../store/database.ts'
import { feedHeads } from '../store/events.ts'
import type { ChangeStream } from './change-stream.ts'
import type { WakeBus } from './wake-bus.ts'

/** Commits within this time are sealed together. */
const GATHER_MS = 10

export class ChangeFeed {
  readonly #db: Database
  readonly #streams = new Map<ChangeStream, Principal>()
  readonly #off: readonly (() => void)[]
  #gathering: NodeJS.Timeout | undefined
  /** Set once by who owns the sealer. */
  wakeSealer: () => void = () => undefined

  constructor(db: Database, bus: WakeBus) {
    this.#db = db
    this.#off = [
      bus.on('event', () => this.#gather()),
      bus.on('sandbox', () => this.#gather()),
      bus.on('key_revoked', (id) => this.#revoke((principal) => principal.apiKeyId === id)),
    ]
  }

  get size(): number {
    return this.#streams.size
  }

  /** Runs a stream to its end. */
  async serve(stream: ChangeStream, principal: Principal): Promise<void> {
    this.#streams.set(stream, principal)
    try {
      this.#gather()
      await stream.run()
    } finally {
      this.#streams.delete(stream)
    }
  }

  /** @throws CodedError `too_many_sessions` */
  requireRoom(principal: Principal): void {
    const open = [...this.#streams.values()].filter((other) => other.apiKeyId === principal.apiKeyId).length
    const value = LIMITS.eventStreamsPerKey
    if (open < value) return
    throw new CodedError('too_many_sessions', `This key has ${open} of ${value} event streams open.`, { limit: { name: 'eventStreamsPerKey', value } })
  }

  /** Wakes the streams whose feed goes on behind where they are. */
  async look(): Promise<void> {
    if (this.#streams.size === 0) return
    const heads = await feedHeads(this.#db, [...new Set([...this.#streams.values()].map((principal) => principal.tenantId))])
    for (const [stream, principal] of this.#streams) stream.seeHead(heads.get(principal.tenantId) ?? 0)
  }

  /** Ends the streams of keys that are revoked or past their time, whether or not anybody told. */
  async sweep(): Promise<void> {
    if (this.#streams.size === 0) return
    const asked = new Set([...this.#streams.values()].map((principal) => principal.apiKeyId))
    const valid = await validKeysAmong(this.#db, [...asked])
    // Streams may have come meanwhile; nobody asked about theirs.
    this.#revoke(({ apiKeyId }) => asked.has(apiKeyId) && !valid.has(apiKeyId))
  }

  /** For the end of the process. */
  close(): void {
    for (const off of this.#off) off()
    clearTimeout(this.#gathering)
    for (const stream of this.#streams.keys()) stream.end(new CodedError('unavailable', 'This server stops; connect again.'))
  }

  #gather(): void {
    if (this.#streams.size === 0 || this.#gathering !== undefined) return
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined
      this.wakeSealer()
    }, GATHER_MS)
  }

  #revoke(isRevoked: (principal: Principal) => boolean): void {
    for (const [stream, principal] of this.#streams) {
      if (isRevoked(principal)) stream.end(new CodedError('session_revoked', 'The key was revoked or is past its time.'))
    }
  }
}
