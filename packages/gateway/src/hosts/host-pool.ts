/**
 * Sessions to host agents, by their id and address.
 *
 * One session carries many streams; another is opened when the present ones are busy, up to a small number, so that one sandbox with
 * many slow streams does not take the streams of its neighbours on that host. A session that ended is replaced at the next request.
 */
import type { ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import { CodedError } from '@sandglass/contract'
import type { World } from '../world.ts'
import type { HostAddress, HostConnector } from './host-connection.ts'
import { HostSession } from './host-session.ts'

const SESSIONS_PER_HOST = 8
/** Above this many streams on every session another session is opened. */
const BUSY_STREAMS = 128
const ATTEMPTS = 3

export class HostPool {
  readonly #connector: HostConnector
  readonly #world: World
  readonly #sessions = new Map<string, Set<HostSession>>()

  constructor(connector: HostConnector, world: World) {
    this.#connector = connector
    this.#world = world
    connector.onReplaced(() => {
      for (const sessions of this.#sessions.values()) for (const session of sessions) session.finish()
    })
    world.metrics.from('sandglass_gateway_host_sessions', () => [...this.#sessions.values()].reduce((sum, sessions) => sum + sessions.size, 0))
  }

  /** @throws CodedError `unavailable`, `overloaded`; then nothing was sent */
  async request(address: HostAddress, headers: OutgoingHttpHeaders, endStream: boolean): Promise<ClientHttp2Stream> {
    let cause: unknown
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const session = this.#choose(address)
      await session.ready
      try {
        return session.request(headers, endStream)
      } catch (error) {
        // Between the choice and the request the session got its GOAWAY.
        cause = error
        session.retire()
      }
    }
    throw new CodedError('unavailable', 'The host of this sandbox cannot be reached.', { cause })
  }

  destroy(): void {
    for (const sessions of this.#sessions.values()) for (const session of sessions) session.destroy()
    this.#sessions.clear()
  }

  #choose(address: HostAddress): HostSession {
    const key = `${address.host_id} ${address.data_plane_url}`
    const sessions = this.#sessions.get(key) ?? new Set()
    this.#sessions.set(key, sessions)
    let best: HostSession | undefined
    for (const session of sessions) {
      if (session.isUsable && (best === undefined || session.openStreams < best.openStreams)) best = session
    }
    if (best !== undefined && (best.openStreams < Math.min(BUSY_STREAMS, best.capacity) || sessions.size >= SESSIONS_PER_HOST)) {
      if (best.openStreams < best.capacity) return best
      throw new CodedError('overloaded', 'The host of this sandbox has as many open streams as it takes.')
    }
    const session = new HostSession(address, this.#connector, this.#world, (closed) => this.#forget(key, closed))
    sessions.add(session)
    this.#world.metrics.count('sandglass_gateway_host_sessions_opened_total')
    return session
  }

  #forget(key: string, session: HostSession): void {
    const sessions = this.#sessions.get(key)
    sessions?.delete(session)
    if (sessions?.size === 0) this.#sessions.delete(key)
  }
}
