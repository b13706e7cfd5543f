/**
 * The one channel of a sandbox: a unix socket in the directory that is mounted into it. The guest dials, and dials again whenever the
 * session ends, so a restarted agent finds it by listening at the same place.
 *
 * A guest can dial as often as it likes: connections are counted and paced per sandbox, a preamble has a deadline and a size, and nothing
 * that one guest does reaches another's channel. The newest guest that shows the right identity is the one that is spoken to.
 */
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { chmod, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import { CodedError, GUEST_PROTOCOL_VERSION, LIMITS } from '@sandglass/contract'
import { systemClock } from '../clock.ts'
import { freshPace, paceDial } from '../domain/dial-pace.ts'
import { type ExpectedGuest, judgePreamble } from '../domain/judge-preamble.ts'
import { type Log, reasonOf } from '../log.ts'
import { GuestSession } from './guest-session.ts'
import { readPreamble, writeAnswer } from './preamble-exchange.ts'

export type ChannelInput = {
  readonly socket: string
  readonly epoch: number
  /** Asked for every guest that dials; changes when the identity is given. */
  readonly expected: () => ExpectedGuest
  readonly log: Log
  /** A session ended and no other took its place. */
  readonly onLost: () => void
}

type Waiter = { readonly take: (session: GuestSession) => void }

export class GuestChannel {
  readonly #input: ChannelInput
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #waiters = new Set<Waiter>()
  #directory: number | undefined
  #session: GuestSession | undefined
  #closed = false
  #pace = freshPace(systemClock.nowMs())
  #unheard = 0

  private constructor(input: ChannelInput) {
    this.#input = input
    this.#server = createServer({ pauseOnConnect: false }, (socket) => this.#answer(socket))
    this.#server.maxConnections = LIMITS.guestConnections
    this.#server.on('error', (error) => input.log.error('guest.listener_failed', { reason: error.message }))
  }

  /** @throws Error when the directory is missing */
  static async listen(input: ChannelInput): Promise<GuestChannel> {
    const channel = new GuestChannel(input)
    await rm(input.socket, { force: true })
    // Through a descriptor of its directory, because the path of a unix socket is limited to 107 bytes.
    channel.#directory = openSync(dirname(input.socket), 'r')
    channel.#server.listen(`/proc/self/fd/${channel.#directory}/${basename(input.socket)}`)
    await once(channel.#server, 'listening')
    await chmod(input.socket, 0o600)
    return channel
  }

  /** @throws CodedError `lost_contact` when no guest is connected */
  session(): GuestSession {
    if (this.#session?.open !== true) throw new CodedError('lost_contact', 'The guest agent is not connected.')
    return this.#session
  }

  get connected(): boolean {
    return this.#session?.open === true
  }

  /** The session, as soon as there is one. @throws CodedError `lost_contact` after the time */
  waitForSession(timeoutMs: number, signal?: AbortSignal): Promise<GuestSession> {
    if (this.#session?.open === true) return Promise.resolve(this.#session)
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        take: (session) => {
          stop()
          resolve(session)
        },
      }
      const stop = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        this.#waiters.delete(waiter)
      }
      const onAbort = (): void => {
        stop()
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        stop()
        reject(new CodedError('lost_contact', `No guest agent has connected within ${timeoutMs} ms.`))
      }, timeoutMs)
      if (signal?.aborted === true) return onAbort()
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiters.add(waiter)
    })
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#session?.destroy()
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
    if (this.#directory !== undefined) closeSync(this.#directory)
  }

  #answer(socket: Socket): void {
    const { pace, heard } = paceDial(this.#pace, systemClock.nowMs())
    this.#pace = pace
    if (heard) return void this.#welcome(socket)
    this.#unheard += 1
    socket.on('error', () => undefined)
    socket.destroy()
  }

  async #welcome(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => this.#sockets.delete(socket))
    try {
      const preamble = await readPreamble(socket)
      const objection = judgePreamble(preamble, this.#input.expected())
      if (objection !== undefined) {
        await writeAnswer(socket, { accept: false, reason: objection })
        throw new CodedError('protocol_unsupported', objection)
      }
      await writeAnswer(socket, { accept: true, version: GUEST_PROTOCOL_VERSION, epoch: this.#input.epoch })
      if (this.#closed) socket.destroy()
      else this.#adopt(new GuestSession(socket, preamble, () => this.#lost(socket)))
    } catch (error) {
      this.#input.log.warn('guest.turned_away', { reason: reasonOf(error), unheard: this.#unheard })
      socket.destroy()
    }
  }

  #adopt(session: GuestSession): void {
    const previous = this.#session
    this.#session = session
    previous?.destroy()
    for (const waiter of [...this.#waiters]) waiter.take(session)
  }

  #lost(socket: Socket): void {
    socket.destroy()
    if (this.#session?.open === true || this.#closed) return
    this.#session = undefined
    this.#input.onLost()
  }
}
