/**
 * The database server of a simulated installation, and the ways to it: connections of processes that may die, pause or be cut off between any two statements
 * of theirs. Statements are run by the real engine (engine.ts).
 *
 * The engine has one session. A transaction has it from its BEGIN to its end, and whoever else wants it waits; who is next is chance. What lies between
 * transactions interleaves freely, and a fault may fall before, between and behind any two statements, and between a commit and its answer. What two open
 * transactions may do to one another's rows is not seen here: that is tried against the real server (test/store-histories.test.ts).
 */
import type { Connection, ConnectionPool, Pools } from '@sandglass/control-plane/store/database'
import type { Actor } from '../kernel/actor.ts'
import { Clockwork } from '../kernel/clockwork.ts'
import { onClock } from '../kernel/globals.ts'
import type { World } from '../kernel/world.ts'
import type { Answer, Engine, Query } from './engine.ts'

export type StoreFaults = {
  /** Of a statement. */
  lostBefore: number
  /** Of what a commit or a single statement was answered. */
  lostAfter: number
  /** Milliseconds that a statement may take at most. */
  slowMs: number
}

export type Commit = { readonly texts: readonly string[]; readonly notifications: readonly string[] }

type Asked = { readonly query: Query; readonly resolve: (answer: Answer) => void; readonly reject: (error: Error) => void }

/** As the server's `idle_in_transaction_session_timeout`. */
const IDLE_IN_TRANSACTION_MS = 10_000

const WRITES = /\b(INSERT|UPDATE|DELETE)\b/

export class SimulatedPostgres {
  readonly world: World
  readonly clock: Clockwork
  readonly faults: StoreFaults = { lostBefore: 0, lostAfter: 0, slowMs: 1 }
  /** Texts of statements that a defect puts in the place of others. */
  readonly replaced: (text: string) => string
  readonly #engine: Engine
  readonly #sessions = new Set<Session>()
  readonly #waiting: Session[] = []
  #holder: Session | undefined
  #isDown = false
  #onCommit: (commit: Commit) => void = () => undefined

  constructor(world: World, engine: Engine, replaced: (text: string) => string = (text) => text) {
    this.world = world
    this.clock = new Clockwork(1, 0)
    this.#engine = engine
    this.replaced = replaced
  }

  onCommit(listener: (commit: Commit) => void): void {
    this.#onCommit = listener
  }

  get isDown(): boolean {
    return this.#isDown
  }

  /** Breaks every connection; what was not committed is gone. */
  goDown(): void {
    this.#isDown = true
    for (const session of [...this.#sessions]) session.break()
  }

  comeUp(): void {
    this.#isDown = false
  }

  /** Asked by the world itself: never fails, takes no time. */
  look(query: Query): Answer {
    return onClock(this.world, this.clock, () => this.#engine.run(query))
  }

  get mayLook(): boolean {
    return this.#holder === undefined
  }

  pools(actor: Actor, sizes: Readonly<Record<Pools, number>>): Readonly<Record<Pools, ConnectionPool>> {
    return { requests: new Pool(this, actor, sizes.requests), hosts: new Pool(this, actor, sizes.hosts), reconcilers: new Pool(this, actor, sizes.reconcilers) }
  }

  open(actor: Actor): Session {
    const session = new Session(this, actor)
    this.#sessions.add(session)
    return session
  }

  /** @returns whether the session may go on now */
  take(session: Session): boolean {
    if (this.#holder === undefined) this.#holder = session
    else if (this.#holder !== session && !this.#waiting.includes(session)) this.#waiting.push(session)
    return this.#holder === session
  }

  run(session: Session, query: Query): Answer {
    const text = this.replaced(query.text)
    const answer = this.look({ ...query, text })
    if (answer.error === undefined && WRITES.test(text)) session.wrote.push(text)
    if (answer.status === 'I') {
      const texts = session.wrote.splice(0)
      if (answer.command !== 'ROLLBACK' && (texts.length > 0 || answer.notifications.length > 0)) this.#onCommit({ texts, notifications: answer.notifications })
    }
    return answer
  }

  /** Its transaction, if any, is over. */
  give(session: Session): void {
    if (this.#holder !== session) return
    this.#holder = undefined
    while (this.#holder === undefined && this.#waiting.length > 0) {
      const [next] = this.#waiting.splice(this.world.random.integer(0, this.#waiting.length - 1), 1)
      next?.pump()
    }
  }

  forget(session: Session): void {
    this.#sessions.delete(session)
    const index = this.#waiting.indexOf(session)
    if (index >= 0) this.#waiting.splice(index, 1)
    if (this.#holder === session) {
      if (session.inTransaction) this.look({ text: 'ROLLBACK' })
      this.give(session)
    }
  }

  /** A process that is stopped in the middle of a transaction holds up nobody for long: its connection is cut. */
  cutTransactionsOf(actor: Actor): void {
    for (const session of [...this.#sessions]) if (session.actor === actor && session.inTransaction) session.break()
  }
}

/** One connection. */
export class Session implements Connection {
  readonly actor: Actor
  readonly wrote: string[] = []
  inTransaction = false
  readonly #server: SimulatedPostgres
  readonly #asked: Asked[] = []
  #broken = false
  #underWay = false
  #turns = 0

  constructor(server: SimulatedPostgres, actor: Actor) {
    this.#server = server
    this.actor = actor
    actor.onEnd(() => this.#endWithProcess())
  }

  get broken(): boolean {
    return this.#broken
  }

  query(query: string | Query): Promise<Answer & { rows: never[] }> {
    return new Promise((resolve, reject) => {
      if (this.#broken) return reject(terminated())
      const asked = typeof query === 'string' ? { text: query } : query
      // What the rows hold is said by the statement's own type.
      this.#asked.push({ query: asked, resolve: resolve as Asked['resolve'], reject })
      this.pump()
    })
  }

  release(broken?: Error): void {
    if (broken !== undefined) this.break()
  }

  pump(): void {
    if (this.#underWay || this.#broken) return
    if (this.#asked.length === 0) {
      if (this.inTransaction) this.#cutWhenIdle()
      return
    }
    if (!this.#server.take(this)) return
    this.#underWay = true
    const { world, faults } = this.#server
    world.at(world.random.between(0.05, faults.slowMs), undefined, 'a statement', () => this.#runNext())
  }

  /** Both ends hear that it is gone; what was not committed is rolled back. */
  break(): void {
    if (this.#broken) return
    this.#broken = true
    this.#server.forget(this)
    const { world } = this.#server
    for (const { reject } of this.#asked.splice(0)) world.at(1, this.actor, 'a broken connection', () => reject(terminated()))
  }

  #runNext(): void {
    this.#underWay = false
    this.#turns += 1
    const asked = this.#asked.shift()
    if (asked === undefined || this.#broken) return
    const { world, faults } = this.#server
    const { random } = world
    if (random.chance(faults.lostBefore)) {
      world.note('postgres', `breaks a connection of ${this.actor.name} before a statement`)
      this.#asked.unshift(asked)
      this.break()
      return
    }
    const answer = this.#server.run(this, asked.query)
    this.inTransaction = answer.status !== 'I'
    if (!this.inTransaction && random.chance(faults.lostAfter)) {
      world.note('postgres', `breaks a connection of ${this.actor.name} behind ${answer.command}`)
      this.#asked.unshift(asked)
      this.break()
      return
    }
    world.at(random.between(0.05, 0.5), this.actor, 'an answer of the database', () =>
      answer.error === undefined ? asked.resolve(answer) : asked.reject(answer.error),
    )
    if (!this.inTransaction) this.#server.give(this)
    this.pump()
  }

  #cutWhenIdle(): void {
    const turn = this.#turns
    this.#server.world.at(IDLE_IN_TRANSACTION_MS, undefined, 'an idle transaction', () => {
      if (this.#turns === turn && this.inTransaction && !this.#underWay) this.break()
    })
  }

  /** What it had sent may be run to its end all the same. */
  #endWithProcess(): void {
    if (this.#broken) return
    if (this.inTransaction && this.#asked.length > 0 && this.#server.world.random.chance(0.5)) {
      for (const { query } of this.#asked.splice(0)) this.inTransaction = this.#server.run(this, query).status !== 'I'
    }
    this.#asked.length = 0
    this.break()
  }
}

const terminated = (): Error => new Error('Connection terminated unexpectedly')

class Pool implements ConnectionPool {
  readonly #server: SimulatedPostgres
  readonly #actor: Actor
  readonly #size: number
  readonly #idle: Session[] = []
  readonly #waiting: (() => void)[] = []
  #open = 0

  constructor(server: SimulatedPostgres, actor: Actor, size: number) {
    this.#server = server
    this.#actor = actor
    this.#size = size
  }

  get totalCount(): number {
    return this.#open
  }

  get idleCount(): number {
    return this.#idle.length
  }

  get waitingCount(): number {
    return this.#waiting.length
  }

  async connect(): Promise<Connection> {
    while (this.#idle.length === 0 && this.#open >= this.#size) await new Promise<void>((resolve) => void this.#waiting.push(resolve))
    let session = this.#idle.pop()
    while (session?.broken === true) {
      this.#open -= 1
      session = this.#idle.pop()
    }
    if (session === undefined) {
      this.#open += 1
      session = await this.#dial()
    }
    return this.#lent(session)
  }

  async end(): Promise<void> {
    for (const session of this.#idle) session.break()
  }

  #dial(): Promise<Session> {
    const { world } = this.#server
    return new Promise((resolve, reject) => {
      world.at(world.random.between(0.1, 1), this.#actor, 'a dial of the database', () => {
        if (!this.#server.isDown) return resolve(this.#server.open(this.#actor))
        this.#gone()
        reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
      })
    })
  }

  #lent(session: Session): Connection {
    return {
      query: (query: string | Query) => session.query(query),
      release: (broken?: Error) => {
        session.release(broken)
        if (session.broken) return this.#gone()
        this.#idle.push(session)
        this.#waiting.shift()?.()
      },
    }
  }

  #gone(): void {
    this.#open -= 1
    this.#waiting.shift()?.()
  }
}
