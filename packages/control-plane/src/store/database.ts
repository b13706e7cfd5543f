/**
 * The way to Postgres: bounded pools, transactions, and the wake-ups that follow a commit.
 *
 * Three pools, because each kind of work must go on while another is stuck: requests of clients, hosts (a lease renewal never waits behind
 * a burst of creates) and reconcilers. Connections are pipelined: statements that a transaction runs without waiting for one another travel together and
 * are executed in their order. Every wait is bounded on both sides. A transaction collects wake-ups; they go to the outbox before the commit, for
 * other replicas, and to this process's own listeners right after it, so that the usual path never waits for a notification to come round.
 */
import { CodedError, LIMITS } from '@sandglass/contract'
import pg from 'pg'
import type { Wake } from '../events/wake-bus.ts'
import { GatheringSocket } from './gathering-socket.ts'
import { type Statement, statement } from './statement.ts'

export type Queryable = { run<Row>(statement: Statement<Row>, values?: readonly unknown[]): Promise<Row[]> }
export type Transaction = Queryable & {
  /** Told to other parties once this transaction is committed. */
  wake(...wakes: Wake[]): void
  /**
   * Sends the commit behind the statements that are under way, so that no lock waits for this process to read their answers. Each of them fails where it
   * must not commit; a failed one makes the commit a rollback. Wake-ups after this are for this process only.
   */
  finish(): void
  /** A part that may fail by itself: what throws in it is undone, its locks too, and the transaction goes on. */
  nested<T>(work: () => Promise<T>): Promise<T>
}

export type Pools = 'requests' | 'hosts' | 'reconcilers'

/** What is needed of a connection; the driver's own is one. */
export type Connection = {
  query<Row extends pg.QueryResultRow>(query: string | { name: string; text: string; values: unknown[] }): Promise<{ rows: Row[]; command: string }>
  /** @param broken it cannot be used again */
  release(broken?: Error): void
}

/** Connections of one kind of work. */
export type ConnectionPool = {
  connect(): Promise<Connection>
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
  end(): Promise<void>
}

/** Names of the constraints that a statement is expected to run into. */
const UNIQUE_VIOLATION = '23505'
const LOCK_NOT_AVAILABLE = '55P03'
const DIVISION_BY_ZERO = '22012'
const IN_FAILED_TRANSACTION = '25P02'

/** Thrown in a transaction whose statements found that somebody else was first: it is rolled back, and whoever asked looks again. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken'
}

const CONNECT_TIMEOUT_MS = 5_000
const STATEMENT_TIMEOUT_MS = 10_000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000

const appendOutbox = statement('outbox/append')

/** int8 comes as text by default; every int8 of ours is a count or a position, far below 2^53. */
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === pg.types.builtins.INT8 && format !== 'binary') return exactInteger
    return format === 'binary' ? pg.types.getTypeParser(oid, 'binary') : pg.types.getTypeParser(oid, 'text')
  },
}

function exactInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`not a safe integer: ${text}`)
  return value
}

export function connectionOptions(url: string, name: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: name,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    lock_timeout: LIMITS.idempotencyWaitMs,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS + CONNECT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    types,
    pipeline: true,
    stream: () => new GatheringSocket(),
  }
}

export type DatabaseOptions = {
  readonly url: string
  readonly poolSizes: Readonly<Record<Pools, number>>
  /** Names this process in outbox rows, so that it skips its own notifications. */
  readonly origin: string
  /** Called after each commit that had wake-ups. */
  readonly onCommit: (wakes: readonly Wake[]) => void
  /** A connection that was idle broke; the pool replaces it. */
  readonly onIdleError: (error: Error) => void
}

export class Database implements Queryable {
  readonly #options: DatabaseOptions
  readonly #pools: Readonly<Record<Pools, ConnectionPool>>
  readonly #pool: ConnectionPool

  constructor(options: DatabaseOptions, pools?: Readonly<Record<Pools, ConnectionPool>>, use: Pools = 'requests') {
    this.#options = options
    this.#pools = pools ?? {
      requests: openPool(options, 'requests'),
      hosts: openPool(options, 'hosts'),
      reconcilers: openPool(options, 'reconcilers'),
    }
    this.#pool = this.#pools[use]
  }

  /** The same database through the pool of another kind of work. */
  for(use: Pools): Database {
    return new Database(this.#options, this.#pools, use)
  }

  async run<Row>(query: Statement<Row>, values: readonly unknown[] = []): Promise<Row[]> {
    return await guarded(async () => {
      const client = await this.#pool.connect()
      let broken: Error | undefined
      try {
        return await runOn(client, query, values)
      } catch (error) {
        if (isOutage(error)) broken = error
        throw error
      } finally {
        client.release(broken)
      }
    })
  }

  /** Commits when `work` returns, rolls back when it throws. */
  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: { durable?: boolean } = {}): Promise<T> {
    return await guarded(async () => {
      const client = await this.#pool.connect()
      const wakes: Wake[] = []
      let committing: Promise<void> | undefined
      const tx: Transaction = {
        run: (query, values = []) => runOn(client, query, values),
        wake: (...more) => void wakes.push(...more),
        finish: () => {
          committing ??= commit(client, tx, this.#options.origin, wakes)
          // Awaited below, unless a statement before it failed: then that one's error is told.
          committing.catch(() => undefined)
        },
        nested: (part) => nestedOn(client, part),
      }
      let broken: Error | undefined
      try {
        // What a crash may forget is only what a sweep finds again (`durable: false`).
        const begun = client.query(options.durable === false ? 'BEGIN; SET LOCAL synchronous_commit = off' : 'BEGIN')
        const [result] = await Promise.all([work(tx), begun])
        await (committing ?? commit(client, tx, this.#options.origin, wakes))
        if (wakes.length > 0) this.#options.onCommit(wakes)
        return result
      } catch (error) {
        if (isOutage(error)) broken = error
        else await client.query('ROLLBACK').catch((cause: unknown) => (broken = asError(cause)))
        throw error
      } finally {
        client.release(broken)
      }
    })
  }

  get connections(): Readonly<Record<Pools, { total: number; idle: number; waiting: number }>> {
    const of = (pool: ConnectionPool) => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount })
    return { requests: of(this.#pools.requests), hosts: of(this.#pools.hosts), reconcilers: of(this.#pools.reconcilers) }
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()))
  }
}

function openPool(options: DatabaseOptions, use: Pools): pg.Pool {
  const pool = new pg.Pool({ ...connectionOptions(options.url, `sandglass ${use}`), max: options.poolSizes[use], idleTimeoutMillis: 60_000 })
  pool.on('error', options.onIdleError)
  // A connection that breaks while it is in use tells the query at hand; as an event without a listener it would end the process.
  pool.on('connect', (client) => void client.on('error', () => undefined))
  return pool
}

async function nestedOn<T>(client: Connection, work: () => Promise<T>): Promise<T> {
  try {
    const begun = client.query('SAVEPOINT nested')
    const [result] = await Promise.all([work(), begun])
    await client.query('RELEASE SAVEPOINT nested')
    return result
  } catch (error) {
    if (!isOutage(error)) await client.query('ROLLBACK TO SAVEPOINT nested; RELEASE SAVEPOINT nested')
    throw error
  }
}

async function commit(client: Connection, tx: Transaction, origin: string, wakes: readonly Wake[]): Promise<void> {
  const told = wakes.filter((wake) => wake.local !== true)
  const noted = told.length === 0 ? [] : tx.run(appendOutbox, [origin, told.map((wake) => wake.topic), told.map((wake) => wake.key)])
  const [committed] = await Promise.all([client.query('COMMIT'), noted])
  // Postgres answers a commit of a transaction that a failed statement has broken with ROLLBACK.
  if (committed.command !== 'COMMIT') throw new Error(`a transaction ended with ${committed.command}`)
}

async function runOn<Row>(client: Connection, query: Statement<Row>, values: readonly unknown[]): Promise<Row[]> {
  const result = await client.query<Row & pg.QueryResultRow>({ name: query.name, text: query.text, values: [...values] })
  return result.rows
}

/** Clients are told `unavailable` when Postgres cannot be reached or is going down; every other error stays what it is. */
async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (isOutage(cause) || isTimeout(cause))
      throw new CodedError('unavailable', 'The database cannot be reached at the moment.', { cause, retryAfterSeconds: 1 })
    if (isUnstorable(cause)) throw new CodedError('invalid_request', 'The request holds text that cannot be stored: NUL or half a surrogate pair.', { cause })
    throw cause
  }
}

const asError = (value: unknown): Error => (value instanceof Error ? value : new Error(String(value)))

const sqlState = (error: unknown): string | undefined => (error instanceof pg.DatabaseError ? error.code : undefined)

/** Connection exceptions, shutdown, crash, starting up, too many connections, and everything that is not an answer of Postgres at all. */
function isOutage(error: unknown): error is Error {
  if (!(error instanceof Error) || error instanceof CodedError) return false
  const state = sqlState(error)
  if (state !== undefined) return state.startsWith('08') || state.startsWith('57P') || state === '53300'
  const code = 'code' in error ? error.code : undefined
  if (typeof code === 'string' && /^(ECONN|ENOENT|EPIPE|ETIMEDOUT|EACCES|ENOTFOUND)/.test(code)) return true
  return /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Query read timeout|timeout expired)/.test(
    error.message,
  )
}

/** A statement, a lock or a transaction took longer than its bound. */
function isTimeout(error: unknown): boolean {
  const state = sqlState(error)
  return state === '57014' || state === LOCK_NOT_AVAILABLE || state === '40P01'
}

/** Text that is JSON and not a Postgres text. */
function isUnstorable(error: unknown): boolean {
  const state = sqlState(error)
  return state === '22021' || state === '22P05' || state === '22P02'
}

export const isLockTimeout = (error: unknown): boolean => sqlState(error) === LOCK_NOT_AVAILABLE

/** Did a statement run into this unique index? */
export function violates(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.code === UNIQUE_VIOLATION && error.constraint === constraint
}

/**
 * Did a statement find no row where it needs one? Such a statement divides by the number of rows: its transaction is broken before anybody has read the
 * answer, and a commit that is already on its way commits nothing.
 */
export const foundNothing = (error: unknown): boolean => sqlState(error) === DIVISION_BY_ZERO

/** For such a statement when what is missing means that somebody else was first. */
export async function orOvertaken<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    if (foundNothing(cause)) throw new Overtaken('somebody else was first', { cause })
    throw cause
  }
}

/**
 * Waits for statements that travel together. When some fail it is the one that broke the transaction whose error is told, not one that came after it.
 */
export async function together<const T extends readonly unknown[]>(answers: T): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  const all = Promise.all(answers)
  // Heard below.
  all.catch(() => undefined)
  const failures = (await Promise.allSettled(answers)).filter((answer) => answer.status === 'rejected').map((answer): unknown => answer.reason)
  const cause = failures.find((failure) => sqlState(failure) !== IN_FAILED_TRANSACTION)
  if (cause !== undefined) throw cause
  return await all
}
