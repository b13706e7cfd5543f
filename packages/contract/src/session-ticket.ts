/**
 * How a browser opens a session: it cannot set headers on a WebSocket, so it asks for a one-time ticket with its key and sends that as an
 * element of the subprotocol. A ticket is good once, for LIMITS.sessionTicketMs, for one key, sandbox, action and generation, at the gateway
 * that gave it. Keys never stand in a URL.
 */
import Type, { type Static } from 'typebox'
import { closed, oneOf } from './schema.ts'

export const SESSION_ACTIONS = ['exec', 'terminal'] as const
export type SessionAction = (typeof SESSION_ACTIONS)[number]

export const CreateSessionTicketSchema = closed(
  { action: oneOf(SESSION_ACTIONS, { description: 'Which WebSocket it is for.' }) },
  { $id: 'CreateSessionTicket' },
)
export type CreateSessionTicket = Static<typeof CreateSessionTicketSchema>

export const SessionTicketSchema = closed(
  {
    protocol: Type.String({ description: 'To be offered as a subprotocol beside sandglass.v1. Secret.' }),
    expires_in_ms: Type.Integer({ minimum: 0 }),
  },
  { $id: 'SessionTicket' },
)
export type SessionTicket = Static<typeof SessionTicketSchema>

const PREFIX = 'sandglass.ticket.'

export const ticketProtocol = (ticket: string): string => `${PREFIX}${ticket}`

/** The ticket among the subprotocols that a client offers, or undefined. */
export function ticketOfProtocols(offered: string | undefined): string | undefined {
  for (const protocol of (offered ?? '').split(',')) {
    const name = protocol.trim()
    if (name.startsWith(PREFIX)) return name.slice(PREFIX.length)
  }
  return undefined
}
