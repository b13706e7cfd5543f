/** POST …/sessions: a one-time ticket for a WebSocket that cannot carry a key in its headers. */
import { LIMITS, parserOf } from '@sandglass/contract'
import { CreateSessionTicketSchema, ticketProtocol } from '@sandglass/contract/session-ticket'
import type { Answer, Call } from '../http/call.ts'
import { readJson } from '../http/request-body.ts'

const body = parserOf(CreateSessionTicketSchema)

export async function createSessionTicket({ request, session, tickets }: Call): Promise<Answer> {
  const { action } = await readJson(request, body)
  const ticket = tickets.issue(session.grant, session.generation, action)
  return { status: 201, json: { protocol: ticketProtocol(ticket), expires_in_ms: LIMITS.sessionTicketMs } }
}
