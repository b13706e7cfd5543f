/**
 * Everything that is going on for clients: each request of the data plane and each WebSocket, from its grant to its end.
 *
 * A session can be closed from here at any moment, with the reason that the client is told: revocation, a new generation, the end of the
 * lease. It counts against the limits per sandbox and per key.
 */
import { CodedError, LIMITS, type Role, type Route } from '@sandglass/contract'
import type { Grant } from './access-desk.ts'

/** A session is asked about so often in the life of its route: an outage of the rest of it, 19 s at least, as long as its host goes on by itself, ends none. */
const CHECKS_PER_ROUTE = 5

export class LiveSession implements Disposable {
  readonly grant: Grant
  readonly needed: Role
  readonly #controller = new AbortController()
  readonly #remove: () => void
  #route: Route
  #validUntilMs: number
  #checkDueMs: number
  #isStream = false

  constructor(grant: Grant, needed: Role, remove: (session: LiveSession) => void) {
    this.grant = grant
    this.needed = needed
    this.#route = grant.route
    this.#validUntilMs = grant.askedAtMs + grant.route.valid_for_ms
    this.#checkDueMs = grant.askedAtMs + grant.route.valid_for_ms / CHECKS_PER_ROUTE
    this.#remove = () => remove(this)
  }

  /** Aborted with a CodedError, or with ClientGone. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get generation(): number {
    return this.#route.generation
  }

  /** It leads to this host, in an epoch before `epoch`. */
  isOn(hostId: string, epoch: number): boolean {
    return this.#route.host_id === hostId && this.#route.epoch < epoch
  }

  /** The route's end on the monotonic clock: without a newer answer the session ends then. */
  get validUntilMs(): number {
    return this.#validUntilMs
  }

  get checkDueMs(): number {
    return this.#checkDueMs
  }

  /** It has no end of its own, so a gateway that stops does not wait for it. */
  get isStream(): boolean {
    return this.#isStream
  }

  becomeStream(): void {
    this.#isStream = true
  }

  /** A newer answer lets it go on. */
  renew(route: Route, askedAtMs: number): void {
    this.#route = route
    this.#validUntilMs = Math.max(this.#validUntilMs, askedAtMs + route.valid_for_ms)
    this.#checkDueMs = askedAtMs + route.valid_for_ms / CHECKS_PER_ROUTE
  }

  close(reason: Error): void {
    if (!this.#controller.signal.aborted) this.#controller.abort(reason)
  }

  [Symbol.dispose](): void {
    this.#remove()
  }
}

export class LiveSessions {
  readonly #bySandbox = new Map<string, Set<LiveSession>>()
  readonly #countByKey = new Map<string, number>()

  /** @param needed the role without which it must end @throws CodedError `too_many_sessions` */
  open(grant: Grant, needed: Role): LiveSession {
    const sessions = this.#bySandbox.get(grant.sandboxId) ?? new Set()
    const ofKey = this.#countByKey.get(grant.apiKeyId) ?? 0
    if (sessions.size >= LIMITS.sessionsPerSandbox) throw tooMany('sessionsPerSandbox', 'This sandbox')
    if (ofKey >= LIMITS.sessionsPerKey) throw tooMany('sessionsPerKey', 'This key')
    const session = new LiveSession(grant, needed, (ended) => this.#remove(ended))
    sessions.add(session)
    this.#bySandbox.set(grant.sandboxId, sessions)
    this.#countByKey.set(grant.apiKeyId, ofKey + 1)
    return session
  }

  get size(): number {
    let size = 0
    for (const sessions of this.#bySandbox.values()) size += sessions.size
    return size
  }

  *all(): Generator<LiveSession> {
    for (const sessions of this.#bySandbox.values()) yield* sessions
  }

  ofSandbox(sandboxId: string): readonly LiveSession[] {
    return [...(this.#bySandbox.get(sandboxId) ?? [])]
  }

  ofKey(apiKeyId: string): readonly LiveSession[] {
    return [...this.all()].filter((session) => session.grant.apiKeyId === apiKeyId)
  }

  #remove(session: LiveSession): void {
    const { sandboxId, apiKeyId } = session.grant
    const sessions = this.#bySandbox.get(sandboxId)
    if (sessions === undefined || !sessions.delete(session)) return
    if (sessions.size === 0) this.#bySandbox.delete(sandboxId)
    const left = (this.#countByKey.get(apiKeyId) ?? 1) - 1
    if (left === 0) this.#countByKey.delete(apiKeyId)
    else this.#countByKey.set(apiKeyId, left)
  }
}

function tooMany(name: 'sessionsPerSandbox' | 'sessionsPerKey', who: string): CodedError {
  const value = LIMITS[name]
  return new CodedError('too_many_sessions', `${who} has ${value} of ${value} sessions and requests open.`, { limit: { name, value } })
}
