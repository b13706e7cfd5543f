/**
 * How a gateway reaches a host agent and proves who it is. The only place that knows.
 *
 * HTTP/2 with prior knowledge, and the gateway's token on every request. Another way to authenticate replaces this file: the pool above
 * needs a session and the headers of a request, nothing else.
 */
import { type ClientHttp2Session, connect } from 'node:http2'
import { CodedError, LIMITS } from '@sandglass/contract'

const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024
/** Node.js refuses new streams when buffers of a session exceed this; its default of 10 is below ten slow readers. */
const SESSION_MEMORY_MIB = 1_024

export type HostConnector = {
  /** Begins to connect. The session emits `connect`, or `close`. */
  readonly open: (dataPlaneUrl: string) => ClientHttp2Session
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>
}

export function tokenConnector(gatewayToken: string): HostConnector {
  return {
    headers: { authorization: `Bearer ${gatewayToken}` },
    open(dataPlaneUrl) {
      const url = URL.parse(dataPlaneUrl)
      if (url?.protocol !== 'http:') throw new CodedError('unavailable', 'The host of this sandbox has no address that a gateway can reach.')
      const session = connect(url.origin, {
        // The window is also what one slow reader may keep in memory; the default of 64 KiB halves the throughput.
        settings: { enablePush: false, initialWindowSize: LIMITS.guestStreamWindowBytes, maxFrameSize: LIMITS.guestFrameBytes },
        maxSessionMemory: SESSION_MEMORY_MIB,
      })
      session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES))
      return session
    },
  }
}
