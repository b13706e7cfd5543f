/**
 * HTTPS to a control plane: connections that are kept, over which nothing is sent before the other end has proved to be a control plane of this installation.
 * Its host name proves nothing here and is not looked at; its SPIFFE id does.
 */
import { Agent, type AgentOptions } from 'node:https'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { CodedError } from '@sandglass/contract'
import type { OwnIdentity } from './own-identity.ts'
import { requirePeer } from './peer.ts'

type Options = Pick<ConnectionOptions, 'secureContext' | 'minVersion' | 'ciphers'>

/** An agent of `node:https` whose connections end, before anything is sent over them, when their peer is not the one that is meant. */
export class JudgingAgent extends Agent {
  readonly #tls: () => Options
  readonly #judge: (socket: TLSSocket) => void

  /** @param judge throws for a peer that is not the one that is meant; what it throws becomes the request's error */
  constructor(options: AgentOptions, tls: () => Options, judge: (socket: TLSSocket) => void) {
    super(options)
    this.#tls = tls
    this.#judge = judge
  }

  /** As with Node.js' own verdict on a certificate, the socket is destroyed in the call that tells the end of the handshake, with all that waits in it. */
  override createConnection({ host, port }: ConnectionOptions): TLSSocket {
    const socket = connect({
      ...this.#tls(),
      ...(host === undefined ? {} : { host }),
      ...(port === undefined ? {} : { port }),
      rejectUnauthorized: false,
      servername: '',
    })
    socket.once('secureConnect', () => {
      try {
        this.#judge(socket)
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)))
      }
    })
    return socket
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
