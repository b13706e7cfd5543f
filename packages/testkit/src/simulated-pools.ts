/**
 * The pools of a simulated host: members without runtimes that follow the ownership protocol. A member is given to one sandbox and never again; which one
 * it was stands in the evidence of the ready report, so that a test can tell whether two sandboxes got the same.
 */
import { type PoolOrder, type PoolPosition, parsePoolSpec } from '@sandglass/contract'

type Pool = { version: number; target: number; readonly idle: Set<string> }

export class SimulatedPools {
  /** Every member that was ever given away, in order. */
  readonly given: string[] = []
  /** Orders as they came, the ignored ones too. */
  readonly orders: PoolOrder[] = []
  /** Do members boot? A test that wants cold starts under a claim says no. */
  boots = true
  readonly #hostId: string
  readonly #pools = new Map<string, Pool>()
  /** Which pool a sandbox's start claimed from. */
  readonly #claimedFrom = new Map<string, string>()
  #members = 0

  constructor(hostId: string) {
    this.#hostId = hostId
  }

  /** Idle members of one pool, or of all. */
  idle(key?: string): number {
    return [...this.#pools].reduce((sum, [of, pool]) => sum + (key === undefined || of === key ? pool.idle.size : 0), 0)
  }

  /** With a new epoch nothing is left and the stored targets are zero (pool.reset); versions stay. */
  reset(): void {
    for (const pool of this.#pools.values()) {
      pool.target = 0
      pool.idle.clear()
    }
  }

  /** @returns whether the order is of the host's epoch and has been carried out, so that its version may be acknowledged */
  order(order: PoolOrder, spec: string, epoch: number): boolean {
    this.orders.push(order)
    parsePoolSpec(spec, order.key)
    // pool.epoch
    if (order.host !== this.#hostId || order.epoch !== epoch) return false
    this.#store(order)
    this.#settle(order.key)
    return true
  }

  /** What a ticket or an end order says of the pool that the sandbox claimed from. */
  position(sandbox: string, position: PoolPosition): void {
    this.#claimedFrom.set(sandbox, position.key)
    this.#store(position)
  }

  /** @returns the member that becomes the sandbox; undefined: none is ready, it starts cold */
  pick(key: string): string | undefined {
    const pool = this.#pools.get(key)
    const [member] = pool?.idle ?? []
    if (pool === undefined || member === undefined) return undefined
    pool.idle.delete(member)
    this.given.push(member)
    return member
  }

  /** Boots and ends members until there are as many as the target. @returns the version that may be acknowledged (pool.ackn) */
  settle(key: string): number {
    return this.#settle(key).version
  }

  /** For an `ended` report: the newest stored version of the pool that the start claimed from (ended.pool). */
  versionFor(sandbox: string): number | null {
    const key = this.#claimedFrom.get(sandbox)
    return key === undefined ? null : (this.#pools.get(key)?.version ?? null)
  }

  version(key: string): number | undefined {
    return this.#pools.get(key)?.version
  }

  #store({ key, version, target }: PoolPosition): void {
    const pool = this.#pools.get(key)
    if (pool === undefined) this.#pools.set(key, { version, target, idle: new Set() })
    // pool.ver
    else if (version > pool.version) Object.assign(pool, { version, target })
  }

  #settle(key: string): Pool {
    const pool = this.#pools.get(key)
    if (pool === undefined) throw new Error(`there is no pool ${key}`)
    while (this.boots && pool.idle.size < pool.target) pool.idle.add(this.#newMember())
    for (const member of pool.idle) {
      if (pool.idle.size <= pool.target) break
      pool.idle.delete(member)
    }
    return pool
  }

  #newMember(): string {
    this.#members += 1
    return `${this.#hostId} member ${this.#members}`
  }
}
