/**
 * How a gateway reaches a host agent, proves who it is, and knows that it is that host. The only place that knows.
 *
 * HTTP/2 over TLS with certificates on both sides. Where a host says that it is reached proves nothing: whoever answers there must hold the certificate of
 * exactly the host that the route names, and nothing is sent before it has shown it.
 */
import { type ClientHttp2Session, connect } from 'node:http2'
import { TLSSocket } from 'node:tls'
import { CodedError, LIMITS } from '@sandglass/contract'
import { type OwnIdentity, PeerRefused, type RefusalReporter, requirePeer } from '@sandglass/identity'

const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
/** Node.js refuses new streams when buffers of a session exceed this; its default of 10 is below ten slow readers. */
const SESSION_MEMORY_MIB = 1_024

/** Which host, and where it says that it is. */
export type HostAddress = { readonly host_id: string; readonly data_plane_url: string }

export type HostConnector = {
  /** Begins to connect. The session emits `connect`, or `close`. */
  readonly open: (dataPlaneUrl: string) => ClientHttp2Session
  /** Once it is connected, before anything is sent. @throws PeerRefused */
  readonly judge: (session: ClientHttp2Session, hostId: string) => void
  /** Calls back when sessions should be opened anew. */
  readonly onReplaced: (listener: () => void) => void
}

/** @param refusals where hosts that are not who they should be are told */
export function identityConnector(identity: OwnIdentity, refusals: Pick<RefusalReporter, 'note'>): HostConnector {
  return {
    onReplaced: (listener) => void identity.onReplaced(listener),
    open(dataPlaneUrl) {
      const url = URL.parse(dataPlaneUrl)
      if (url?.protocol !== 'https:') throw new CodedError('unavailable', 'The host of this sandbox has no address that a gateway can reach.')
      const session = connect(url.origin, {
        secureContext: identity.context,
        rejectUnauthorized: false,
        servername: '',
        // The window is also what one slow reader may keep in memory; the default of 64 KiB halves the throughput.
        settings: { enablePush: false, initialWindowSize: LIMITS.guestStreamWindowBytes, maxFrameSize: LIMITS.guestFrameBytes },
        maxSessionMemory: SESSION_MEMORY_MIB,
      })
      session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES))
      return session
    },
    judge(session, hostId) {
      const { socket } = session
      try {
        requirePeer(identity.check(socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined), 'host', hostId)
      } catch (error) {
        if (error instanceof PeerRefused) refusals.note(error, socket.remoteAddress)
        throw error
      }
    },
  }
}
