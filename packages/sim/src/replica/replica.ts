/** One control plane: the whole of the real one (packages/control-plane/src/control-plane.ts), over the simulated database and the simulated network. */

import { parserOf } from '@sandglass/contract'
import type { Config } from '@sandglass/control-plane/config'
import { startControlPlane } from '@sandglass/control-plane/control-plane'
import { WAKE_TOPICS, type WakeBus } from '@sandglass/control-plane/events/wake-bus'
import type { CrashPoint } from '@sandglass/control-plane/faults/crash-point'
import { noTracing } from '@sandglass/telemetry'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { Actor } from '../kernel/actor.ts'
import { Clockwork } from '../kernel/clockwork.ts'
import type { World } from '../kernel/world.ts'
import type { Request } from '../network/network.ts'
import type { SimulatedPostgres } from '../store/simulated-postgres.ts'

export type HandledAnswer = { readonly status: number; readonly body: string }

export type StreamListener = {
  begin(status: number): void
  data(chunk: Uint8Array): void
  end(failure?: Error): void
}

const payloads = parserOf(Type.Object({ origin: Type.String(), topic: Type.Enum([...WAKE_TOPICS]), key: Type.String() }))

/** Log lines from here on are of something that nobody expected. */
const ERROR_LEVEL = 50

export class Replica {
  readonly name: string
  readonly #world: World
  readonly #postgres: SimulatedPostgres
  readonly #config: Config
  readonly #clock: Clockwork
  /** What happens at a named point of the code; may end the process or stall it. */
  readonly #reach: (replica: Replica, point: CrashPoint) => Promise<void> | void
  #actor: Actor | undefined
  #app: FastifyInstance | undefined
  #internal: FastifyInstance | undefined
  #hear: ((payload: string) => void) | undefined
  #gap: (() => void) | undefined

  constructor(
    world: World,
    name: string,
    { postgres, config, reach }: { postgres: SimulatedPostgres; config: Config; reach: (replica: Replica, point: CrashPoint) => Promise<void> | void },
  ) {
    this.name = name
    this.#world = world
    this.#postgres = postgres
    this.#config = config
    this.#clock = new Clockwork(1 + world.random.between(-0.001, 0.001), 0)
    this.#reach = reach
  }

  get actor(): Actor | undefined {
    return this.#actor
  }

  get listens(): boolean {
    return this.#app !== undefined && this.#actor?.alive === true
  }

  get paused(): boolean {
    return this.#actor?.paused === true
  }

  get clock(): Clockwork {
    return this.#clock
  }

  /** A start that fails is tried again, as a supervisor does. */
  start(): void {
    if (this.#actor?.alive === true) return
    const actor = new Actor(this.#world, this.name, this.#clock)
    this.#actor = actor
    this.#world.note(this.name, 'starts')
    actor.run(() => {
      this.#run(actor).catch((error: unknown) => {
        if (!actor.alive) return
        this.#world.note(this.name, `did not start: ${String(error)}`)
        actor.die()
        this.#world.at(1_000, undefined, 'a supervisor', () => this.start())
      })
    })
  }

  kill(): void {
    if (this.#actor?.alive !== true) return
    this.#world.note(this.name, 'is killed')
    this.#app = undefined
    this.#internal = undefined
    this.#hear = undefined
    this.#actor.die()
  }

  pause(): void {
    if (this.#actor?.alive !== true || this.#actor.paused) return
    this.#world.note(this.name, 'is paused')
    this.#actor.pause()
    this.#postgres.cutTransactionsOf(this.#actor)
  }

  resume(): void {
    if (this.#actor?.paused !== true) return
    this.#world.note(this.name, 'goes on')
    this.#actor.resume()
  }

  /** Nothing is heard before both sides listen. */
  #appOf({ url }: Request): FastifyInstance | undefined {
    if (this.#app === undefined) return undefined
    return url.startsWith('/internal/v1/hosts/') ? this.#internal : this.#app
  }

  /** A notification of the database. */
  hear(payload: string, delayMs: number): void {
    this.#world.at(delayMs, this.#actor, 'a notification', () => this.#hear?.(payload))
  }

  /** The connection that listens was lost and is back. */
  hearGap(): void {
    this.#world.at(1, this.#actor, 'a gap of notifications', () => this.#gap?.())
  }

  /** @param answered undefined: the process ended meanwhile */
  handle(request: Request, answered: (answer: HandledAnswer | undefined) => void): void {
    const [actor, app] = [this.#actor, this.#appOf(request)]
    if (actor === undefined || app === undefined) {
      answered(undefined)
      return
    }
    let open = true
    const answer = (value: HandledAnswer | undefined): void => {
      if (open) answered(value)
      open = false
    }
    actor.onEnd(() => answer(undefined))
    this.#world.at(0, actor, `${request.method} ${request.url}`, () => {
      app
        .inject({ method: request.method, url: request.url, headers: request.headers, ...(request.body === undefined ? {} : { payload: request.body }) })
        .then(({ statusCode, payload }) => answer({ status: statusCode, body: payload }))
        .catch(() => answer(undefined))
    })
  }

  /** An answer that goes on until one of both ends it. @returns ends it from the other side */
  stream(request: Request, listener: StreamListener): () => void {
    const [actor, app] = [this.#actor, this.#appOf(request)]
    if (actor === undefined || app === undefined) {
      listener.end()
      return () => undefined
    }
    let open = true
    let close = (): void => undefined
    const end = (failure?: Error): void => {
      if (open) listener.end(failure)
      open = false
    }
    actor.onEnd(() => end(new Error('read ECONNRESET')))
    this.#world.at(0, actor, `${request.method} ${request.url}`, () => {
      app.inject({ method: request.method, url: request.url, headers: request.headers, payloadAsStream: true }).then(
        (answer) => {
          if (!open) return void answer.raw.res.destroy()
          listener.begin(answer.statusCode)
          const stream = answer.stream()
          stream.on('data', (chunk: Uint8Array) => {
            if (open) listener.data(chunk)
          })
          stream.on('end', () => end())
          stream.on('error', (error) => end(error))
          close = () => void answer.raw.res.destroy()
        },
        (error: unknown) => end(error instanceof Error ? error : new Error(String(error))),
      )
    })
    return () => {
      open = false
      this.#world.at(0, actor, 'the other end of a stream is gone', () => close())
    }
  }

  async #run(actor: Actor): Promise<void> {
    const random = this.#world.random.split()
    await startControlPlane(
      this.#config,
      {
        random: (size) => random.bytes(size),
        monotonicMs: () => this.#clock.monotonicMs(this.#world.nowMs),
        wallMs: () => Math.floor(this.#clock.wallMs(this.#world.nowMs)),
        logStream: { write: (line) => this.#log(line) },
        tracing: noTracing,
        faults: { reach: (point) => this.#reach(this, point) },
        hint: (deliver) => deliver(),
      },
      {
        migrate: async () => undefined,
        pools: (sizes) => this.#postgres.pools(actor, sizes),
        notifications: ({ origin, bus }) => this.#notifications(origin, bus),
        listen: async (app, side) => {
          await app.ready()
          if (side === 'internal') {
            if (this.#actor === actor) this.#internal = app
            return `https://${this.name}`
          }
          if (this.#actor === actor) this.#app = app
          this.#world.note(this.name, 'listens')
          return `http://${this.name}`
        },
      },
    )
  }

  #notifications(origin: string, bus: WakeBus) {
    return {
      connected: true,
      start: () => {
        this.#gap = () => bus.gap()
        this.#hear = (payload) => {
          const wake = payloads.parse(JSON.parse(payload))
          if (wake.origin !== origin) bus.emit([{ topic: wake.topic, key: wake.key }])
        }
        bus.gap()
      },
      stop: async () => undefined,
    }
  }

  /** Whatever fails for another reason than an outage is a defect. */
  #log(line: string): void {
    const told: unknown = JSON.parse(line)
    if (!isLogLine(told)) return
    const { level, msg, err } = told
    if (err === undefined && level < ERROR_LEVEL) return
    this.#world.note(this.name, `${msg}${err === undefined ? '' : `: ${err.type}: ${err.message}`}`)
    const isOutage = err?.code === 'unavailable' || /Connection terminated|ECONNREFUSED|response destroyed/.test(`${err?.message} ${err?.cause}`)
    if (!isOutage) this.#world.violate(`${this.name}: an error that nobody expected: ${msg}: ${err?.message ?? ''} ${err?.cause ?? ''}\n${err?.stack ?? ''}`)
  }
}

type LogLine = {
  readonly level: number
  readonly msg: string
  readonly err?: { readonly type: string; readonly message: string; readonly stack: string; readonly code?: string; readonly cause?: string }
}

const isLogLine = (value: unknown): value is LogLine => typeof value === 'object' && value !== null && 'level' in value && 'msg' in value
