/** One admitted request of the data plane, as its handler sees it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LiveSession } from '../auth/live-sessions.ts'
import type { SessionTickets } from '../auth/session-tickets.ts'
import type { BufferBudget } from '../exec/buffer-budget.ts'
import type { GuestClient } from '../hosts/guest-client.ts'
import type { World } from '../world.ts'
import type { Query } from './raw-query.ts'

export type Call = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Checked by the route's schema; `path` is still percent-encoded. */
  readonly query: Query
  /** `pr…` or `key:…`, percent-encoded for a path of the guest protocol; empty where the route has none. */
  readonly process: string
  readonly session: LiveSession
  readonly guest: GuestClient
  readonly requestId: string
  readonly budget: BufferBudget
  readonly tickets: SessionTickets
  readonly world: World
  /** Keeps the session until this is over, after the answer. It must not reject. */
  readonly keepUntil: (work: Promise<void>) => void
}

/** An answer in one piece; `streamed` when the handler has written and ended it. */
export type Answer = { readonly status: number; readonly json?: unknown } | 'streamed'

/** Errors before the first byte become a problem document, later ones break the connection. */
export type Handler = (call: Call) => Promise<Answer>
