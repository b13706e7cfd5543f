/**
 * Ends what is no longer allowed.
 *
 * The feed tells of revoked keys, changed sandboxes and fenced hosts at once. While it is lost, every live session is asked about again and again. And
 * because a route is worth no more than the host's lease had left, every session is asked about before its route ends, feed or no feed;
 * when nobody answers until then, it ends.
 */
import { CodedError, type ErrorCode, type FeedEvent } from '@sandglass/contract'
import { codedError } from '../problems/send-problem.ts'
import type { World } from '../world.ts'
import type { AccessDesk } from './access-desk.ts'
import type { LiveSession, LiveSessions } from './live-sessions.ts'

const TICK_MS = 1_000
const QUESTIONS_AT_ONCE = 16
/** How long an ending waits for its reason. */
const REASON_WAIT_MS = 1_000

/** Of a question about a session that was allowed before. */
type Verdict = { readonly goesOn: true } | { readonly goesOn: false; readonly reason: CodedError }

export class SessionCheck {
  readonly #desk: AccessDesk
  readonly #sessions: LiveSessions
  readonly #world: World
  #isFeedAlive = false
  #cancelTick: () => void = () => undefined
  #isAsking = false

  constructor(desk: AccessDesk, sessions: LiveSessions, world: World) {
    this.#desk = desk
    this.#sessions = sessions
    this.#world = world
  }

  start(): void {
    this.#cancelTick = this.#world.timer(TICK_MS, () => {
      this.#tick()
      this.start()
    })
  }

  stop(): void {
    this.#cancelTick()
  }

  /** Events in the meantime are unknown, so everything is asked about. */
  feedConnected(): void {
    this.#isFeedAlive = true
    this.#desk.clear()
    void this.#check([...this.#sessions.all()])
  }

  feedLost(): void {
    this.#isFeedAlive = false
    this.#desk.clear()
    void this.#check([...this.#sessions.all()])
  }

  event(event: FeedEvent): void {
    if (event.type === 'key_revoked') {
      this.#desk.keyRevoked(event.api_key_id)
      for (const session of this.#sessions.ofKey(event.api_key_id)) session.close(new CodedError('session_revoked', 'The key was revoked.'))
    } else if (event.type === 'sandbox_changed') {
      this.#desk.sandboxChanged(event.sandbox_id, event.generation)
      const stale = this.#sessions.ofSandbox(event.sandbox_id).filter((session) => session.generation < event.generation)
      void this.#endStale(stale)
    } else if (event.type === 'host_fenced') {
      // At once, and of however many sandboxes: what becomes of each of them may not be decided yet.
      this.#desk.hostFenced(event.host_id, event.epoch)
      const reason = new CodedError('session_revoked', 'The host of the sandbox was lost.')
      for (const session of this.#sessions.all()) if (session.isOn(event.host_id, event.epoch)) session.close(reason)
    }
  }

  /** They end in any case; the question is only for the reason. */
  async #endStale(stale: readonly LiveSession[]): Promise<void> {
    const [first] = stale
    if (first === undefined) return
    const end = (reason: CodedError) => {
      for (const session of stale) session.close(reason)
    }
    const changed = new CodedError('session_revoked', 'The sandbox changed.')
    const cancel = this.#world.timer(REASON_WAIT_MS, () => end(changed))
    const verdict = await this.#ask(first, true)
    cancel()
    end(verdict.goesOn ? changed : verdict.reason)
  }

  /** Ends what has run out, whether or not anybody answers; asks about what is due, one round at a time. */
  #tick(): void {
    const nowMs = this.#world.nowMs()
    for (const session of this.#sessions.all()) {
      if (session.validUntilMs > nowMs) continue
      session.close(new CodedError('lost_contact', 'Nobody could confirm for too long that the sandbox is still where it was.'))
    }
    if (this.#isAsking) return
    this.#isAsking = true
    void this.#check([...this.#sessions.all()].filter((session) => !this.#isFeedAlive || session.checkDueMs <= nowMs)).finally(() => {
      this.#isAsking = false
    })
  }

  async #check(sessions: readonly LiveSession[]): Promise<void> {
    const groups = Map.groupBy(sessions, ({ grant }) => `${grant.keySha256}:${grant.sandboxId}`)
    const queue = [...groups.values()]
    const worker = async () => {
      for (let group = queue.pop(); group !== undefined; group = queue.pop()) {
        // The first one asks; its answer serves the others of the same key and sandbox.
        for (const [index, session] of group.entries()) {
          const verdict = await this.#ask(session, index === 0)
          if (!verdict.goesOn) session.close(verdict.reason)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(QUESTIONS_AT_ONCE, queue.length) }, worker))
  }

  async #ask(session: LiveSession, isFresh: boolean): Promise<Verdict> {
    try {
      const { keySha256, sandboxId } = session.grant
      const grant = isFresh ? await this.#desk.freshGrant(keySha256, sandboxId, session.needed) : await this.#desk.grant(keySha256, sandboxId, session.needed)
      if (grant.route.generation > session.generation) return { goesOn: false, reason: new CodedError('session_revoked', 'The sandbox changed.') }
      session.renew(grant.route, grant.askedAtMs)
      return { goesOn: true }
    } catch (error) {
      const reason = endingReason(codedError(error))
      return reason === undefined ? { goesOn: true } : { goesOn: false, reason }
    }
  }
}

const ENDED: ReadonlySet<ErrorCode> = new Set(['sandbox_ended', 'sandbox_stopped', 'sandbox_failed', 'sandbox_not_ready'] satisfies ErrorCode[])
const REVOKED: ReadonlySet<ErrorCode> = new Set(['unauthenticated', 'forbidden'] satisfies ErrorCode[])

/** Undefined when the answer says nothing about the session: the control plane is away, or the host is late. */
function endingReason(error: CodedError): CodedError | undefined {
  if (REVOKED.has(error.code)) return new CodedError('session_revoked', 'The key was revoked.')
  if (error.code === 'sandbox_not_found') return new CodedError('sandbox_ended')
  return ENDED.has(error.code) ? error : undefined
}
