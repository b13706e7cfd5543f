/**
 * The newest position of each pool in the epoch that this host holds: in memory at once, on disk soon after, and told only from there.
 *
 * A claim writes the position into its sandbox's record, so it does not wait for the file here; a position that neither holds yet has had no
 * effect that outlives this process.
 */
import type { PoolPosition, PoolSpec } from '@sandglass/contract'
import type { Clock } from '../clock.ts'
import { poolAfter, type StoredPool } from '../domain/stored-pool.ts'
import { type Log, reasonOf } from '../log.ts'
import type { PoolRecords } from '../state/pool-records.ts'

const RETRY_MS = 500

export class PoolPositions {
  readonly #records: PoolRecords
  readonly #clock: Clock
  readonly #log: Log
  #epoch: number
  readonly #pools = new Map<string, StoredPool>()
  readonly #durable = new Map<string, StoredPool>()
  readonly #writing = new Map<string, Promise<void>>()
  readonly #closing = new AbortController()

  private constructor(records: PoolRecords, epoch: number, clock: Clock, log: Log) {
    this.#records = records
    this.#epoch = epoch
    this.#clock = clock
    this.#log = log
  }

  static async load(records: PoolRecords, epoch: number, clock: Clock, log: Log): Promise<PoolPositions> {
    const positions = new PoolPositions(records, epoch, clock, log)
    for (const pool of await records.load(epoch)) {
      positions.#pools.set(pool.key, pool)
      positions.#durable.set(pool.key, pool)
    }
    return positions
  }

  get epoch(): number {
    return this.#epoch
  }

  all(): readonly StoredPool[] {
    return [...this.#pools.values()]
  }

  find(key: string): StoredPool | undefined {
    return this.#pools.get(key)
  }

  /** The newest position of the pool is on disk. */
  isDurable(key: string): boolean {
    const pool = this.#pools.get(key)
    return pool === undefined || this.#durable.get(key) === pool
  }

  /** @returns whether it is of the epoch that this host holds */
  take(epoch: number, position: PoolPosition, spec: PoolSpec | null): boolean {
    // guard: pool.epoch
    if (epoch !== this.#epoch) return false
    this.#pools.set(position.key, poolAfter(this.#pools.get(position.key), position, spec))
    return true
  }

  /** Resolves when what was taken of the pool up to now is on disk, or the agent stops. */
  async flush(key: string): Promise<void> {
    while (!this.isDurable(key) && !this.#closing.signal.aborted) {
      const writing = this.#writing.get(key) ?? this.#write(key).finally(() => this.#writing.delete(key))
      this.#writing.set(key, writing)
      await writing
    }
  }

  /** guard: pool.reset. With a new epoch every target is zero: what earlier epochs told is forgotten. @throws Error when the disk does not */
  async enter(epoch: number): Promise<void> {
    if (epoch === this.#epoch) return
    await Promise.all(this.#writing.values())
    this.#pools.clear()
    this.#durable.clear()
    this.#epoch = epoch
    await this.#records.forgetAll()
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the host agent stops'))
    await Promise.all(this.#writing.values())
  }

  async #write(key: string): Promise<void> {
    const pool = this.#pools.get(key)
    if (pool === undefined) return
    try {
      await this.#records.write(this.#epoch, pool)
      this.#durable.set(key, pool)
    } catch (error) {
      this.#log.error('pool.not_stored', { pool: key, reason: reasonOf(error) })
      await this.#clock.wait(RETRY_MS, this.#closing.signal).catch(() => {})
    }
  }
}
