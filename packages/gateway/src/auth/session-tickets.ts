/**
 * One-time tickets for WebSockets of browsers.
 *
 * Only the SHA-256 of a ticket is kept, in memory: a gateway has no database, and a ticket lives for seconds at the gateway that gave it.
 * What it is bound to is compared when it is used, and its key is asked about again, so a revoked key opens nothing.
 */
import { createHash } from 'node:crypto'
import { CodedError, LIMITS } from '@sandglass/contract'
import type { SessionAction } from '@sandglass/contract/session-ticket'
import type { World } from '../world.ts'
import type { Grant } from './access-desk.ts'

const TICKET_BYTES = 32

export type Bound = {
  readonly keySha256: string
  readonly apiKeyId: string
  readonly sandboxId: string
  readonly action: SessionAction
  readonly generation: number
}

const digestOf = (ticket: string): string => createHash('sha256').update(ticket).digest('hex')

export class SessionTickets {
  readonly #world: World
  /** Oldest first: all live equally long. */
  readonly #tickets = new Map<string, Bound & { readonly endsAtMs: number }>()

  constructor(world: World) {
    this.#world = world
  }

  /** @throws CodedError `too_many_sessions` */
  issue(grant: Grant, generation: number, action: SessionAction): string {
    this.#sweep()
    let ofKey = 0
    for (const { apiKeyId } of this.#tickets.values()) if (apiKeyId === grant.apiKeyId) ofKey += 1
    const value = LIMITS.sessionTicketsPerKey
    if (ofKey >= value) {
      throw new CodedError('too_many_sessions', `This key has ${value} of ${value} tickets that were not used yet.`, {
        limit: { name: 'sessionTicketsPerKey', value },
      })
    }
    const ticket = Buffer.from(this.#world.random(TICKET_BYTES)).toString('base64url')
    const { keySha256, apiKeyId, sandboxId } = grant
    this.#tickets.set(digestOf(ticket), { keySha256, apiKeyId, sandboxId, action, generation, endsAtMs: this.#world.nowMs() + LIMITS.sessionTicketMs })
    return ticket
  }

  /** Uses a ticket up. @throws CodedError `unauthenticated` when it is unknown, used, late, or for something else */
  redeem(ticket: string, sandboxId: string, action: SessionAction): Bound {
    this.#sweep()
    const digest = digestOf(ticket)
    const bound = this.#tickets.get(digest)
    // Used up also when it is shown at the wrong door.
    this.#tickets.delete(digest)
    if (bound === undefined || bound.sandboxId !== sandboxId || bound.action !== action) {
      throw new CodedError('unauthenticated', 'The ticket is used, too old, or for something else; ask for another one.')
    }
    return bound
  }

  #sweep(): void {
    const nowMs = this.#world.nowMs()
    for (const [digest, { endsAtMs }] of this.#tickets) {
      if (endsAtMs > nowMs) return
      this.#tickets.delete(digest)
    }
  }
}
