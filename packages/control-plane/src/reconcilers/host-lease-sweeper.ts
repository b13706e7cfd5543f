/**
 * One observer of the leases of hosts: reads which are held, plans (domain/host/fencing.ts), and fences each that is due in a transaction of its own.
 *
 * Any number of observers may look, one in each control plane: the first fence wins, and the others find another epoch. Nobody is asked to lead, so a
 * control plane that is away delays nothing. A failure of any kind makes this observer count anew: a database that takes no writes let no host
 * renew either (guard: fence.gap).
 */
import type { Context } from '../context.ts'
import { type LeaseSeen, longestUnchangedMs, notWatching, planFences } from '../domain/host/fencing.ts'
import { fenceHost } from '../services/fence-host.ts'
import type { Database, Queryable } from '../store/database.ts'
import { heldLeases } from '../store/leases.ts'
import type { Outcome } from './reconciler.ts'

type SweeperContext = Pick<Context, 'config' | 'leases' | 'metrics'> & {
  readonly log: Pick<Context['log'], 'warn'>
  readonly world: Pick<Context['world'], 'monotonicMs' | 'faults'>
  readonly db: Queryable & Pick<Database, 'transaction'>
}

export class HostLeaseSweeper {
  readonly #context: SweeperContext

  constructor(context: SweeperContext) {
    this.#context = context
    const { leases } = context
    context.metrics.from('sandglass_host_lease_longest_unchanged_seconds', () => (leases.memory === undefined ? 0 : longestUnchangedMs(leases.memory) / 1_000))
  }

  async reconcile(): Promise<Outcome> {
    try {
      return await this.#look()
    } catch (error) {
      const { leases } = this.#context
      if (leases.memory !== undefined) leases.memory = notWatching(leases.memory)
      throw error
    }
  }

  async #look(): Promise<Outcome> {
    const { config, db, leases, metrics, world } = this.#context
    const { leaseMs, fenceGraceMs, fenceGapMs } = config.timing
    const askedAtMs = world.monotonicMs()
    const held = await heldLeases(db)
    // guard: fence.read
    const answeredAtMs = world.monotonicMs()
    // guard: fence.grace
    const bounds = { waitMs: leaseMs + fenceGraceMs, gapMs: fenceGapMs }
    const { fence, memory, anew, nextInMs } = planFences(leases.memory, { leases: held, askedAtMs, answeredAtMs }, bounds)
    leases.memory = memory
    if (anew) metrics.count('sandglass_host_lease_watches_total')
    if (fence.length > 0) await world.faults.reach('fence.planned')
    let fenced = 0
    for (const seen of fence) if (await this.#fence(seen)) fenced += 1
    return { actions: fenced, nextInMs }
  }

  async #fence(seen: LeaseSeen): Promise<boolean> {
    const { db, log, metrics, world } = this.#context
    const done = await db.transaction((tx) => fenceHost(tx, seen))
    if (!done) return false
    log.warn({ host: seen.hostId, epoch: seen.epoch, seq: seen.seq }, 'a host was fenced: it did not renew its lease')
    metrics.count('sandglass_hosts_fenced_total')
    await world.faults.reach('fence.committed')
    return true
  }
}
