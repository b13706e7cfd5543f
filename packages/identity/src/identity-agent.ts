/**
 * HTTPS to a control plane: connections that are kept, over which nothing is sent before the other end has proved to be a control plane of this installation.
 * Its host name proves nothing here and is not looked at; its SPIFFE id does.
 */
import { Agent, type AgentOptions } from 'node:https'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { CodedError } from '@sandglass/contract'
import type { OwnIdentity } from './own-identity.ts'
import { requirePeer } from './peer.ts'

type Options = Pick<ConnectionOptions, 'host' | 'port' | 'secureContext' | 'minVersion' | 'ciphers'>

/** @param judge throws for a peer that is not the one that is meant */
export function connectTo(options: Options, judge: (socket: TLSSocket) => void): TLSSocket {
  const socket = connect({ ...options, rejectUnauthorized: false, servername: '' })
  socket.once('secureConnect', () => {
    try {
      judge(socket)
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  })
  return socket
}

type Created = (error: Error | null, socket: Duplex) => void

/** An agent of `node:https` that hands out connections only once their peer was judged. */
export class JudgingAgent extends Agent {
  readonly #tls: () => Options
  readonly #judge: (socket: TLSSocket) => void

  constructor(options: AgentOptions, tls: () => Options, judge: (socket: TLSSocket) => void) {
    super(options)
    this.#tls = tls
    this.#judge = judge
  }

  override createConnection(options: ConnectionOptions, created?: Created): undefined {
    const { host, port } = options
    const socket = connectTo({ ...this.#tls(), ...(host === undefined ? {} : { host }), ...(port === undefined ? {} : { port }) }, this.#judge)
    const failed = (error: Error): void => created?.(error, socket)
    socket.once('error', failed)
    socket.once('secureConnect', () => {
      if (socket.destroyed) return
      socket.off('error', failed)
      created?.(null, socket)
    })
    return undefined
  }
}

/**
 * The agent to be used for the next request: after a renewal it is a new one, so that no connection outlives the certificate that it was opened with by more
 * than its idle time.
 */
export function controlPlaneAgent(identity: OwnIdentity, options: AgentOptions): () => Agent {
  const judge = (socket: TLSSocket): void => requirePeer(identity.check(socket.getPeerX509Certificate()), 'control-plane')
  const make = (): Agent => new JudgingAgent(options, () => ({ secureContext: identity.context }), judge)
  let agent = make()
  identity.onReplaced(() => {
    const old = agent
    agent = make()
    for (const socket of Object.values(old.freeSockets).flat()) socket?.destroy()
  })
  return () => agent
}

/** @throws CodedError `invalid_request` for anything but an address of HTTPS */
export function secureUrl(text: string, what: string): URL {
  const url = URL.parse(text)
  if (url?.protocol !== 'https:') throw new CodedError('invalid_request', `${what} must be an https:// URL: machines speak to the control plane by TLS only.`)
  return url
}
