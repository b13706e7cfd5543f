/** Terminals of one sandbox, tickets for its WebSockets, and what it uses. */
import Type from 'typebox'
import { LIMITS } from '../limits.ts'
import { closed, oneOf } from '../schema.ts'
import { CreateSessionTicketSchema, SessionTicketSchema } from '../session-ticket.ts'
import { SandboxUsageSchema } from '../usage.ts'
import { data, type PublicRoute, start } from './public-route.ts'

export const SESSION_ROUTES = {
  createSessionTicket: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/sessions',
    server: 'gateway',
    role: 'member',
    summary: 'A one-time ticket for a WebSocket of a browser, which cannot send a key in a header',
    body: CreateSessionTicketSchema,
    responses: { 201: SessionTicketSchema },
    errors: [...data, 'invalid_request', 'body_too_large'],
  },
  getUsage: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/usage',
    server: 'gateway',
    role: 'viewer',
    summary: 'CPU, memory, disk and network of a sandbox, counted by its host',
    responses: { 200: SandboxUsageSchema },
    errors: data,
  },
  terminal: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/terminal',
    server: 'gateway',
    role: 'member',
    summary: 'A terminal over a WebSocket (subprotocol sandglass.v1): a new one, or `id` with `since` to come back',
    query: closed({
      id: Type.Optional(Type.String({ maxLength: 160 })),
      cols: Type.Optional(Type.String({ pattern: '^[0-9]{1,5}$' })),
      rows: Type.Optional(Type.String({ pattern: '^[0-9]{1,5}$' })),
      since: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$' })),
      user: Type.Optional(Type.String({ maxLength: LIMITS.userCharacters })),
      cwd: Type.Optional(Type.String({ maxLength: LIMITS.cwdBytes })),
      shell: Type.Optional(Type.String({ maxLength: 255 })),
      key: Type.Optional(Type.String({ maxLength: LIMITS.processKeyCharacters })),
      takeover: Type.Optional(oneOf(['0', '1'], { description: 'With `id`: those who type into it through the same gateway are closed with 4423.' })),
      view: Type.Optional(oneOf(['0', '1'], { description: 'With `id`: only watches; what it types is dropped.' })),
    }),
    responses: { 101: null },
    errors: [...data, ...start, 'process_not_found', 'not_a_terminal'],
  },
} as const satisfies Record<string, PublicRoute>
