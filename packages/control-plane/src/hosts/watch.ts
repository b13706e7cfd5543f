/**
 * One host's watch: every order that is due is written, and written again until it is no longer due. On a wake-up only the sandboxes it names are looked
 * at; a sweep, and the wake-up of a pool, looks at all. Orders are explicit and safe to repeat, so nothing here has to be remembered beyond this connection.
 *
 * Pools are read before starts and written after them: a host that reads a pool's version has then read the tickets of all claims that it counts, and ends
 * no member that one of them is about to ask for. What a claim did to a pool travels in its ticket; the pool's own order only stands behind it.
 */
import type { Writable } from 'node:stream'
import { CodedError, type HostOrder } from '@sandglass/contract'
import type { Context } from '../context.ts'
import type { Database } from '../store/database.ts'
import { type DueOrder, readDueOrders } from '../store/hosts.ts'
import { type DuePoolOrder, duePoolOrders } from '../store/pools.ts'
import { moveSandbox, type SandboxRow } from '../store/sandboxes.ts'
import { endLine, isEnd, orderKey, poolLine, poolOrderKey, startLine } from './order-lines.ts'

type Reach = 'all' | Set<string>

/** A start that is ready sooner than this was never seen `starting`. */
const DISPATCH_NOTE_MS = 100

/** How long a host may leave a full connection unread before it is cut. */
const DRAIN_TIMEOUT_MS = 10_000

export class HostWatch {
  readonly #context: Context
  readonly #db: Database
  readonly #hostId: string
  readonly #epoch: number
  readonly #output: Writable
  /** When an order was last written, by what it says. */
  readonly #sentAtMs = new Map<string, number>()
  /** Starts that a transaction of this process has made due. */
  #handed: DueOrder[] = []
  /** Sandbox to generation of starts that were written and may still take a while. */
  readonly #dispatched = new Map<string, number>()
  #noting: NodeJS.Timeout | undefined
  #reach: Reach = new Set()
  #wake: (() => void) | undefined
  #closed = false

  constructor(context: Context, watch: { hostId: string; epoch: number; output: Writable }) {
    this.#context = context
    this.#db = context.db.for('hosts')
    this.#hostId = watch.hostId
    this.#epoch = watch.epoch
    this.#output = watch.output
  }

  /** Runs until the connection closes, the host takes another epoch, or `close` is called. */
  async run(): Promise<void> {
    const { bus, config, desk, log } = this.#context
    const off = [
      bus.on('host', (key) => this.#onWake(key)),
      bus.on('operation', (_, { sandbox }) => this.#onEnded(sandbox)),
      bus.onGap(() => this.#widen()),
      desk.open(this.#hostId, (order) => this.#onHanded(order)),
    ]
    this.#output.once('close', () => this.close())
    const sweep = setInterval(() => this.#widen(), config.timing.sweepMs)
    const heartbeat = setInterval(() => void this.#write({ type: 'heartbeat' }), config.timing.heartbeatMs)
    try {
      this.#reach = 'all'
      let synced = false
      while (!this.#closed) {
        for (const order of this.#handed.splice(0)) if (order.epoch === this.#epoch) await this.#send(order)
        const reach = this.#reach
        this.#reach = new Set()
        const sent = await this.#sendDue(reach)
        if (sent === 'other_epoch') return
        if (sent === 'all' && !synced) {
          synced = true
          await this.#write({ type: 'synced' })
        }
        await this.#nextWake()
      }
    } catch (error) {
      log.warn({ host: this.#hostId, err: error }, 'a host watch ended')
    } finally {
      clearInterval(sweep)
      clearTimeout(this.#noting)
      clearInterval(heartbeat)
      for (const remove of off) remove()
      this.#output.end()
    }
  }

  close(): void {
    this.#closed = true
    this.#wake?.()
  }

  #onWake(key: string): void {
    const [hostId, sandboxId] = key.split(' ')
    if (hostId !== this.#hostId) return
    if (sandboxId === undefined) this.#reach = 'all'
    else if (this.#reach !== 'all') this.#reach.add(sandboxId)
    this.#wake?.()
  }

  /** One that became ready in this process need not be noted as starting. */
  #onEnded(sandbox: SandboxRow | undefined): void {
    if (sandbox !== undefined && this.#dispatched.get(sandbox.id) === sandbox.generation) this.#dispatched.delete(sandbox.id)
  }

  #onHanded(order: DueOrder): void {
    this.#handed.push(order)
    this.#wake?.()
  }

  #widen(): void {
    this.#reach = 'all'
    this.#wake?.()
  }

  async #nextWake(): Promise<void> {
    if (this.#closed || this.#handed.length > 0 || !isEmpty(this.#reach)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    await promise
    this.#wake = undefined
  }

  /** While the database is away nothing can be due; the next sweep looks again. */
  async #sendDue(reach: Reach): Promise<'all' | 'some' | 'other_epoch'> {
    try {
      return await this.#sendRead(reach)
    } catch (error) {
      if (error instanceof CodedError && error.code === 'unavailable') return 'some'
      throw error
    }
  }

  async #sendRead(reach: Reach): Promise<'all' | 'some' | 'other_epoch'> {
    if (isEmpty(reach)) return 'some'
    const pools = reach === 'all' ? await duePoolOrders(this.#db, this.#hostId) : []
    const rows = await readDueOrders(this.#db, this.#hostId, reach === 'all' ? undefined : [...reach])
    const lease = rows[0]
    if (lease?.epoch !== this.#epoch) return 'other_epoch'
    const due = rows.filter((row): row is DueOrder => row.sandbox_id !== null)
    if (reach === 'all') this.#forgetAnswered([...due.map(orderKey), ...pools.map(poolOrderKey)])
    for (const row of due) {
      if (this.#closed) return 'some'
      await this.#send(row)
    }
    for (const pool of pools) {
      if (this.#closed) return 'some'
      await this.#sendPool(pool)
    }
    return reach === 'all' ? 'all' : 'some'
  }

  #forgetAnswered(due: readonly string[]): void {
    const still = new Set(due)
    for (const key of this.#sentAtMs.keys()) if (!still.has(key)) this.#sentAtMs.delete(key)
  }

  /** @returns false when it was written a moment ago */
  #isTime(key: string): boolean {
    const sentAtMs = this.#sentAtMs.get(key)
    const nowMs = this.#context.world.monotonicMs()
    if (sentAtMs !== undefined && nowMs - sentAtMs < this.#context.config.timing.resendMs) return false
    this.#sentAtMs.set(key, nowMs)
    return true
  }

  async #send(row: DueOrder): Promise<void> {
    const { world, metrics, signer } = this.#context
    if (!this.#isTime(orderKey(row))) return
    if (isEnd(row)) {
      await this.#write(endLine(signer, this.#hostId, row))
      metrics.count('sandglass_orders_sent_total', { type: 'end' })
      await world.faults.reach('end.sent')
      return
    }
    await this.#write(startLine(signer, this.#hostId, row))
    metrics.count('sandglass_orders_sent_total', { type: 'start' })
    await world.faults.reach('start.sent')
    if (row.observed === 'assigned') this.#dispatch(row)
  }

  async #sendPool(pool: DuePoolOrder): Promise<void> {
    const { metrics, signer } = this.#context
    if (!this.#isTime(poolOrderKey(pool))) return
    await this.#write(poolLine(signer, this.#hostId, pool))
    metrics.count('sandglass_orders_sent_total', { type: 'pool' })
  }

  /** Only tells people how far a start is, so it is noted when that takes a while, and a crash may forget it. */
  #dispatch(row: DueOrder): void {
    this.#dispatched.set(row.sandbox_id, row.generation)
    this.#noting ??= setTimeout(() => void this.#noteDispatched(), DISPATCH_NOTE_MS)
  }

  async #noteDispatched(): Promise<void> {
    const starts = [...this.#dispatched]
    this.#dispatched.clear()
    this.#noting = undefined
    try {
      for (const [id, generation] of starts) await this.#db.transaction((tx) => moveSandbox(tx, { id, generation }, 'dispatch'), { durable: false })
    } catch (error) {
      this.#context.log.debug({ host: this.#hostId, err: error }, 'that starts were sent was not noted')
    }
  }

  async #write(order: HostOrder): Promise<void> {
    if (this.#closed || this.#output.destroyed) return
    if (this.#output.write(`${JSON.stringify(order)}\n`)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => this.#output.destroy(), DRAIN_TIMEOUT_MS)
    this.#output.once('drain', resolve)
    this.#output.once('close', resolve)
    await promise
    clearTimeout(timer)
    this.#output.off('drain', resolve)
    this.#output.off('close', resolve)
  }
}

const isEmpty = (reach: Reach): boolean => reach !== 'all' && reach.size === 0
