/**
 * The way in for WebSockets: everything that can be refused is refused as an HTTP answer, before the upgrade.
 *
 * Messages have no compression, so that a few bytes cannot become many, and are bounded in size and number of fragments.
 */
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { CodedError, LIMITS, newRequestId, PUBLIC_ROUTES, type Role, randomBase32, WS_SUBPROTOCOL } from '@sandglass/contract'
import { ticketOfProtocols } from '@sandglass/contract/session-ticket'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Admission, Admitted } from '../auth/admission.ts'
import { requireOrigin } from '../auth/origin.ts'
import { emptyQuery, parseQuery } from '../http/raw-query.ts'
import { openRequestSpan } from '../http/request-span.ts'
import { codedError, REQUEST_ID_HEADER, refuseUpgrade } from '../problems/send-problem.ts'
import type { World } from '../world.ts'
import type { Opening } from './opening.ts'
import { SessionSocket } from './session-socket.ts'
import { terminalOpening } from './terminal-request.ts'
import { Viewers } from './viewers.ts'
import { Writers } from './writers.ts'

const PATH = /^\/v1\/sandboxes\/([^/?#]+)\/(exec|terminal)(?:\?|$)/
const FRAGMENTS = 64
const CHUNKS = 4_096

export type SessionDoor = { readonly admission: Admission; readonly allowedOrigins: ReadonlySet<string>; readonly world: World }

type Wanted = { readonly sandbox: string; readonly kind: 'exec' | 'terminal' }

export function acceptSessions(server: Server, door: SessionDoor): void {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: LIMITS.controlFrameBytes + 1,
    maxFragments: FRAGMENTS,
    maxBufferedChunks: CHUNKS,
    handleProtocols: () => WS_SUBPROTOCOL,
  })
  const writers = new Writers()
  const inside = { ...door, writers, viewers: new Viewers() }
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => void accept(sockets, inside, request, socket, head))
}

type Inside = SessionDoor & { readonly writers: Writers; readonly viewers: Viewers }

async function accept(sockets: WebSocketServer, door: Inside, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const requestId = newRequestId(door.world.random)
  const onError = () => socket.destroy()
  socket.on('error', onError)
  let admitted: Admitted | undefined
  try {
    const wanted = wantedOf(request)
    const span = openRequestSpan(door.world.tracing, request, PUBLIC_ROUTES[wanted.kind].path, requestId)
    socket.once('close', () => span.end())
    requireOrigin(request.headers.origin, door.allowedOrigins)
    const wish = { sandboxId: wanted.sandbox, needed: roleOf(wanted), traceparent: span.traceparent }
    // A key in the headers counts first: whoever can set it needs no ticket.
    const ticket = request.headers.authorization === undefined ? ticketOfProtocols(request.headers['sec-websocket-protocol']) : undefined
    admitted = await (ticket === undefined ? door.admission.admit(request, wish) : door.admission.admitTicket(ticket, wanted.kind, wish))
    requireProtocol(request)
    const opening = openingOf(request, wanted, door.world)
    socket.off('error', onError)
    if (socket.destroyed) {
      admitted.session[Symbol.dispose]()
      return
    }
    const webSocket = await upgraded(sockets, request, socket, head, requestId)
    if (webSocket === undefined) admitted.session[Symbol.dispose]()
    else await serve(door, { admitted, opening, requestId, socket: webSocket }, wanted)
  } catch (error) {
    admitted?.session[Symbol.dispose]()
    refuseUpgrade(socket, codedError(error), { instance: request.url?.split('?')[0] ?? '', requestId })
  }
}

type Accepted = { readonly admitted: Admitted; readonly opening: Opening | undefined; readonly requestId: string; readonly socket: WebSocket }

async function serve({ world, writers, viewers }: Inside, accepted: Accepted, { kind, sandbox }: Wanted): Promise<void> {
  const { admitted, requestId } = accepted
  admitted.session.becomeStream()
  world.metrics.count('sandglass_gateway_sessions_total', { kind })
  world.log('info', 'session_opened', { request_id: requestId, kind, sandbox })
  const startedMs = world.nowMs()
  await new SessionSocket({ ...accepted, writers, viewers, world }).run()
  admitted.session[Symbol.dispose]()
  const durationMs = world.nowMs() - startedMs
  world.metrics.observeSeconds('sandglass_gateway_session_duration_seconds', { kind }, durationMs / 1_000)
  world.log('info', 'session_closed', { request_id: requestId, kind, sandbox, duration_ms: Math.round(durationMs) })
}

/** Undefined when the library has refused the handshake and closed the socket. */
function upgraded(sockets: WebSocketServer, request: IncomingMessage, socket: Duplex, head: Buffer, requestId: string): Promise<WebSocket | undefined> {
  return new Promise((resolve) => {
    const addRequestId = (headers: string[], about: IncomingMessage) => {
      if (about === request) headers.push(`${REQUEST_ID_HEADER}: ${requestId}`)
    }
    const done = (webSocket?: WebSocket) => {
      sockets.off('headers', addRequestId)
      socket.off('close', done)
      resolve(webSocket)
    }
    sockets.on('headers', addRequestId)
    socket.once('close', () => done())
    sockets.handleUpgrade(request, socket, head, (webSocket) => done(webSocket))
  })
}

/** @throws CodedError `route_not_found` */
function wantedOf(request: IncomingMessage): Wanted {
  const match = PATH.exec(request.url ?? '')
  if (match?.[1] === undefined || request.method !== 'GET') throw new CodedError('route_not_found')
  return { sandbox: match[1], kind: match[2] === 'terminal' ? 'terminal' : 'exec' }
}

function roleOf({ kind }: Wanted): Role {
  return PUBLIC_ROUTES[kind].role
}

/** @throws CodedError `invalid_request` */
function requireProtocol(request: IncomingMessage): void {
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim())
  if (!offered.includes(WS_SUBPROTOCOL)) throw new CodedError('invalid_request', `Offer the subprotocol ${WS_SUBPROTOCOL}.`)
}

function openingOf(request: IncomingMessage, { kind }: Wanted, world: World): Opening | undefined {
  const url = request.url ?? ''
  if (kind === 'terminal') return terminalOpening(url, () => `gw-${randomBase32(world.random)}`)
  parseQuery(url, emptyQuery)
  return undefined
}
