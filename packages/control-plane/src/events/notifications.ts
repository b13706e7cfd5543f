/**
 * Hears wake-ups of other replicas (LISTEN). When the connection breaks it comes back by itself, and everyone is told that something may have been
 * missed, so that they look for themselves.
 */
import { parserOf } from '@sandglass/contract'
import pg from 'pg'
import Type from 'typebox'
import type { Log } from '../context.ts'
import { connectionOptions } from '../store/database.ts'
import { WAKE_TOPICS, type WakeBus } from './wake-bus.ts'

const RECONNECT_MS = 500

const payloads = parserOf(Type.Object({ origin: Type.String(), topic: Type.Enum([...WAKE_TOPICS]), key: Type.String() }))

export class Notifications {
  readonly #options: { url: string; origin: string; bus: WakeBus; log: Log }
  #client: pg.Client | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: { url: string; origin: string; bus: WakeBus; log: Log }) {
    this.#options = options
  }

  get connected(): boolean {
    return this.#client !== undefined
  }

  /** Returns at once; connecting goes on behind. */
  start(): void {
    void this.#connect()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => undefined)
  }

  async #connect(): Promise<void> {
    // A listening connection is idle by nature: only the way to it is bounded.
    const client = new pg.Client({
      connectionString: this.#options.url,
      application_name: 'sandglass listen',
      connectionTimeoutMillis: connectionOptions(this.#options.url, '').connectionTimeoutMillis,
      keepAlive: true,
    })
    let lost = false
    const lose = (): void => {
      if (lost) return
      lost = true
      const wasListening = this.#client === client
      if (wasListening) this.#client = undefined
      client.end().catch(() => undefined)
      if (this.#stopped) return
      if (wasListening) this.#options.log.warn('lost the connection that listens for wake-ups')
      this.#timer = setTimeout(() => void this.#connect(), RECONNECT_MS)
    }
    client.on('error', lose)
    client.on('end', lose)
    client.on('notification', (message) => this.#hear(message.payload))
    try {
      await client.connect()
      await client.query('LISTEN sandglass_wake')
    } catch {
      lose()
      return
    }
    if (lost) return
    if (this.#stopped) {
      await client.end().catch(() => undefined)
      return
    }
    this.#client = client
    this.#options.bus.gap()
  }

  #hear(text: string | undefined): void {
    const payload = parsed(text)
    if (!payloads.check(payload) || payload.origin === this.#options.origin) return
    this.#options.bus.emit([{ topic: payload.topic, key: payload.key }])
  }
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return undefined
  }
}
