/** One HTTP/2 session to a host agent: connects within a bound, is pinged, and says when it takes no more requests. */
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import { CodedError } from '@sandglass/contract'
import { reasonOf } from '../log.ts'
import type { World } from '../world.ts'
import type { HostAddress, HostConnector } from './host-connection.ts'

const CONNECT_TIMEOUT_MS = 3_000
const PING_PERIOD_MS = 5_000
const PING_TIMEOUT_MS = 5_000
/** Until the host's own number is known. */
const STREAMS_BEFORE_SETTINGS = 100

export class HostSession {
  /** Resolves when requests can be made. @throws CodedError `unavailable` */
  readonly ready: Promise<void>
  readonly #session: ClientHttp2Session
  readonly #hostId: string
  readonly #connector: HostConnector
  readonly #world: World
  #isUsable = true
  #openStreams = 0
  #cancelTimer: () => void = () => undefined

  constructor(address: HostAddress, connector: HostConnector, world: World, onClosed: (session: HostSession) => void) {
    this.#hostId = address.host_id
    this.#connector = connector
    this.#world = world
    this.#session = connector.open(address.data_plane_url)
    this.#session.on('goaway', () => {
      this.#isUsable = false
    })
    this.#session.on('error', () => {
      this.#isUsable = false
    })
    this.#session.once('close', () => {
      this.#isUsable = false
      this.#cancelTimer()
      onClosed(this)
    })
    this.ready = this.#connected()
    // Each request awaits it too; one that nobody awaits must not end the process.
    this.ready.catch(() => undefined)
  }

  get isUsable(): boolean {
    return this.#isUsable
  }

  get openStreams(): number {
    return this.#openStreams
  }

  /** Streams that the host takes at once. */
  get capacity(): number {
    return this.#session.connecting ? STREAMS_BEFORE_SETTINGS : (this.#session.remoteSettings?.maxConcurrentStreams ?? STREAMS_BEFORE_SETTINGS)
  }

  /** @throws Error when the session can take no request any more; then nothing was sent */
  request(headers: OutgoingHttpHeaders, endStream: boolean): ClientHttp2Stream {
    const stream = this.#session.request(headers, { endStream })
    this.#openStreams += 1
    stream.once('close', () => {
      this.#openStreams -= 1
    })
    return stream
  }

  /** Takes no more requests; those that are open go on. */
  retire(): void {
    this.#isUsable = false
  }

  /** Closes it when the requests that are open are over. */
  finish(): void {
    this.retire()
    this.#session.close()
  }

  /** Cuts it, and with it all its streams. */
  destroy(): void {
    this.#isUsable = false
    this.#cancelTimer()
    this.#session.destroy()
  }

  #connected(): Promise<void> {
    return new Promise((resolve, reject) => {
      let cause: unknown
      const fail = () => reject(new CodedError('unavailable', 'The host of this sandbox cannot be reached.', { cause }))
      this.#cancelTimer = this.#world.timer(CONNECT_TIMEOUT_MS, () => {
        fail()
        this.destroy()
      })
      this.#session.on('error', (error) => {
        cause = error
      })
      this.#session.once('close', fail)
      this.#session.once('connect', () => {
        try {
          this.#connector.judge(this.#session, this.#hostId)
        } catch (error) {
          cause = error
          this.#world.log('warn', 'host_refused', { host: this.#hostId, reason: reasonOf(error) })
          fail()
          this.destroy()
          return
        }
        this.#cancelTimer()
        this.#schedulePing()
        resolve()
      })
    })
  }

  #schedulePing(): void {
    this.#cancelTimer = this.#world.timer(PING_PERIOD_MS, () => {
      if (this.#session.destroyed) return
      this.#cancelTimer = this.#world.timer(PING_TIMEOUT_MS, () => {
        this.#world.log('warn', 'host_silent')
        this.#world.metrics.count('sandglass_gateway_host_sessions_silent_total')
        this.destroy()
      })
      this.#session.ping((error) => {
        if (error !== null) return
        this.#cancelTimer()
        this.#schedulePing()
      })
    })
  }
}
