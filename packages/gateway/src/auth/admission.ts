/** The one door to a sandbox, for requests and for WebSockets: who are you, may you, where is it, is there room. */
import type { IncomingMessage } from 'node:http'
import { CodedError, parseSandboxId, type Role, type SandboxId } from '@sandglass/contract'
import type { SessionAction } from '@sandglass/contract/session-ticket'
import { GuestClient } from '../hosts/guest-client.ts'
import type { HostPool } from '../hosts/host-pool.ts'
import type { RouteTable } from '../routes/route-table.ts'
import { SessionRoutes } from '../routes/session-routes.ts'
import type { World } from '../world.ts'
import type { AccessDesk } from './access-desk.ts'
import { keySha256Of } from './bearer.ts'
import type { LiveSession, LiveSessions } from './live-sessions.ts'
import type { SessionTickets } from './session-tickets.ts'

export type Admitted = {
  /** To be disposed of when the request or the connection is over. */
  readonly session: LiveSession
  readonly guest: GuestClient
}

export type Wish = {
  /** As it came. */
  readonly sandboxId: string
  readonly needed: Role
  /** Of the request's span. */
  readonly traceparent: string | undefined
}

export class Admission {
  readonly #desk: AccessDesk
  readonly #sessions: LiveSessions
  readonly #table: RouteTable
  readonly #pool: HostPool
  readonly #tickets: SessionTickets
  readonly #world: World
  #isOpen = true

  constructor(desk: AccessDesk, sessions: LiveSessions, table: RouteTable, pool: HostPool, tickets: SessionTickets, world: World) {
    this.#tickets = tickets
    this.#world = world
    this.#desk = desk
    this.#sessions = sessions
    this.#table = table
    this.#pool = pool
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** From now on nobody is let in. */
  close(): void {
    this.#isOpen = false
  }

  /** @throws CodedError `unauthenticated`, `invalid_id`, `forbidden`, `sandbox_not_found`, `too_many_sessions`, or why the sandbox cannot be reached */
  async admit(request: IncomingMessage, wish: Wish): Promise<Admitted> {
    this.#requireOpen()
    return this.#letIn(keySha256Of(request.headers.authorization), sandboxIdOf(wish), wish)
  }

  /** With a one-time ticket in place of a key. @throws CodedError as `admit`, and `session_revoked` when the sandbox changed since */
  async admitTicket(ticket: string, action: SessionAction, wish: Wish): Promise<Admitted> {
    this.#requireOpen()
    const sandboxId = sandboxIdOf(wish)
    const bound = this.#tickets.redeem(ticket, sandboxId, action)
    const admitted = await this.#letIn(bound.keySha256, sandboxId, wish)
    if (admitted.session.generation === bound.generation) return admitted
    admitted.session[Symbol.dispose]()
    throw new CodedError('session_revoked', 'The sandbox changed since the ticket was given; ask for another one.')
  }

  #requireOpen(): void {
    if (!this.#isOpen) throw new CodedError('unavailable', 'This gateway is about to stop; try again in a moment.')
  }

  async #letIn(keySha256: string, sandboxId: SandboxId, { needed, traceparent }: Wish): Promise<Admitted> {
    const session = this.#sessions.open(await this.#desk.grant(keySha256, sandboxId, needed), needed)
    return { session, guest: new GuestClient(this.#pool, new SessionRoutes(session, this.#desk, this.#table), { sandboxId, traceparent }, this.#world) }
  }
}

/** @throws CodedError `invalid_id` */
function sandboxIdOf(wish: Wish): SandboxId {
  const sandboxId = parseSandboxId(wish.sandboxId)
  if (sandboxId === undefined) throw new CodedError('invalid_id', 'This is not the id of a sandbox. Names work at the API, not here.')
  return sandboxId
}
