/**
 * Pool planner: reads hosts, pools and demand, plans (domain/pool/plan.ts), and applies each change in a transaction of its own, from the version that was
 * read. A claim or another planner that was first makes the change fall through; the next look plans again.
 *
 * Demand and templates change slowly and are read now and then; hosts and pools at each look, since a claimed unit is replaced at the next.
 */
import { poolSpecText } from '@sandglass/contract'
import type { PoolSettings } from '../config.ts'
import type { Context } from '../context.ts'
import { DEMAND, type Demand, type Floor, type PoolChange, planPools } from '../domain/pool/plan.ts'
import { wakePool } from '../events/wake-bus.ts'
import { type Database, Overtaken } from '../store/database.ts'
import { hostOffers } from '../store/hosts.ts'
import { ensurePool, isAnythingWaitingForRoom, listPools, poolDemand, resizePool } from '../store/pools.ts'
import { findTemplate } from '../store/templates.ts'
import type { Outcome } from './reconciler.ts'

/** How old the view of demand may be. */
const DEMAND_AGE_MS = 2_000

/** Before planning again for what was overtaken. */
const REPLAN_MS = 50

type Needs = { readonly demand: readonly Demand[]; readonly floors: readonly Floor[] }

export class PoolPlanner {
  readonly #context: Pick<Context, 'config' | 'world'> & { readonly db: Database }
  #needs: (Needs & { readonly readAtMs: number }) | undefined

  constructor(context: Pick<Context, 'config' | 'world'> & { readonly db: Database }) {
    this.#context = context
  }

  async reconcile(): Promise<Outcome> {
    const { config, db } = this.#context
    const [pools, waiting] = await Promise.all([listPools(db, 'all'), isAnythingWaitingForRoom(db)])
    if (!config.pools.enabled && pools.every((pool) => pool.target === 0)) return { actions: 0 }
    const { demand, floors } = await this.#readNeeds()
    const hosts = await hostOffers(db, config.timing.leaseMs)
    const plan = planPools({ hosts, pools, demand, floors, bounds: config.pools, waiting })
    let applied = 0
    for (const change of plan) if (await this.#apply(change)) applied += 1
    return { actions: applied, nextInMs: applied < plan.length ? REPLAN_MS : undefined }
  }

  async #readNeeds(): Promise<Needs> {
    const { config, db, world } = this.#context
    if (!config.pools.enabled) return { demand: [], floors: [] }
    const known = this.#needs
    if (known !== undefined && world.monotonicMs() - known.readAtMs < DEMAND_AGE_MS) return known
    const readAtMs = world.monotonicMs()
    const [demand, floors] = await Promise.all([poolDemand(db, DEMAND.windowS, DEMAND.recentS), resolveFloors(db, config.pools)])
    this.#needs = { demand, floors, readAtMs }
    return this.#needs
  }

  /** @returns false when something overtook the change */
  async #apply({ hostId, key, spec, epoch, version, target }: PoolChange): Promise<boolean> {
    const { memory_mb: memoryMb, disk_gb: diskGb } = spec.resources
    try {
      await this.#context.db.transaction(async (tx) => {
        if (version === 0) await ensurePool(tx, { hostId, key, spec: poolSpecText(spec), memoryMb, diskGb })
        if (!(await resizePool(tx, { hostId, key, epoch, version }, target))) throw new Overtaken()
        tx.wake(wakePool(hostId))
      })
      return true
    } catch (error) {
      if (error instanceof Overtaken) return false
      throw error
    }
  }
}

/** Of each template's current version; a template that is not there yet has no floor. */
async function resolveFloors(db: Database, { floors }: PoolSettings): Promise<Floor[]> {
  const found = await Promise.all(floors.map(async (floor) => ({ floor, template: await findTemplate(db, floor.template, null) })))
  return found.flatMap(({ floor, template }) => (template === undefined ? [] : [{ ...floor, template: { name: template.name, digest: template.digest } }]))
}
