/**
 * Placement: reads what waits and whose turn it is (domain/placement/fair-order.ts), takes for itself what no other scheduler has, plans over what hosts offer
 * (domain/placement/plan.ts), and applies the choices in the transaction that holds what it took.
 *
 * Schedulers of several processes split the work by the locks of that transaction (SKIP LOCKED), in the order of turns. Two that chose the same room: one
 * commits, the other finds its statement without a row, undoes that part and plans again. A kind that found no room is not looked at again in the same run,
 * so that however many wait, those behind them are looked at too.
 */
import type { Config } from '../config.ts'
import type { Context } from '../context.ts'
import { type ExactAmounts, plus, ZERO } from '../domain/amounts.ts'
import { fairOrder } from '../domain/placement/fair-order.ts'
import { type HostOffer, type Place, type PlacementPlan, planPlacement, type Wait } from '../domain/placement/plan.ts'
import { wakePool } from '../events/wake-bus.ts'
import { placeEach } from '../services/place-sandbox.ts'
import { readSpread } from '../store/assignments.ts'
import type { Database, Transaction } from '../store/database.ts'
import { hostOffers } from '../store/hosts.ts'
import { listPools, resizePool } from '../store/pools.ts'
import {
  agedWaiting,
  explainAwaitedEndsOf,
  explainKindWait,
  explainSandboxWait,
  type LockedPending,
  lockWaiting,
  nextRetryInMs,
  readQueue,
} from '../store/waiting.ts'
import { pickOf } from '../world.ts'
import type { Outcome } from './reconciler.ts'

/** Placed in one transaction: as many hosts at most are locked together, and each is a part of it that may fail by itself. */
const BATCH = 64

/** Of each tenant those that have waited longest, and of all of them the first: what is ordered at once. */
const PER_TENANT = 256
const ORDERED = 1_024

/** After so long, and so many batches, the order of turns is made anew: how late one can be seen that has just come. */
const ORDER_AGE_MS = 250
const ORDER_BATCHES = 4

/** More schedulers than this share the parts of the fleet. */
const SCHEDULERS = 16

/** Room is kept for so many others at most. */
const KEPT = 16

/** Before planning again for what was overtaken, or what other schedulers have now. */
const REPLAN_MS = 5
const OTHERS_MS = 50

export type PlacementContext = Pick<Context, 'world' | 'desk'> & { readonly config: Pick<Config, 'timing' | 'placement'>; readonly db: Database }

/** `looked`: were its own to place, whatever came of it. */
type Batch = { readonly looked: number; readonly placed: number; readonly overtaken: number; readonly told: ReadonlyMap<string, Told> }
/** Of a kind: why the last one of it waits, and those that were told one by one. */
type Told = { readonly reason: string; readonly ids: string[] }

export async function reconcilePlacement(context: PlacementContext): Promise<Outcome> {
  const { db, world, config } = context
  await explainAwaitedEndsOf(db, config.timing.leaseMs)
  const blocked = new Set<string>()
  let fleet: ExactAmounts | undefined
  let placed = 0
  let overtaken = 0
  let others = 0
  for (;;) {
    const queue = await readQueue(db, { perTenant: PER_TENANT, most: ORDERED, butKinds: [...blocked] })
    if (queue.waiting.length === 0) break
    fleet ??= offeredBy(await hostOffers(db, config.timing.leaseMs))
    const readAtMs = world.monotonicMs()
    const ids = fairOrder(queue.waiting, queue.tenants, fleet, ORDERED).map(({ id }) => id)
    let looked = 0
    // Batches that other schedulers had: so many place at the same time.
    let schedulers = 1
    others = 0
    for (let at = 0; at < ids.length && (looked < ORDER_BATCHES * BATCH || world.monotonicMs() - readAtMs < ORDER_AGE_MS); at += BATCH) {
      const turn = ids.slice(at, at + BATCH)
      const batch = await placeBatch(context, turn, schedulers)
      if (batch.looked < turn.length) schedulers = Math.min(SCHEDULERS, schedulers + 1)
      for (const [kind, { reason, ids: told }] of batch.told) {
        blocked.add(kind)
        await explainKindWait(db, kind, reason, told)
      }
      looked += batch.looked
      placed += batch.placed
      overtaken += batch.overtaken
      others += turn.length - batch.looked
    }
    if (looked === 0 || overtaken > 0) break
  }
  const soon = overtaken > 0 ? REPLAN_MS : others > 0 ? OTHERS_MS : undefined
  return { actions: placed, nextInMs: soon ?? (await nextRetryInMs(db)) }
}

const offeredBy = (hosts: readonly HostOffer[]): ExactAmounts => hosts.filter((host) => !host.lost).reduce((sum, host) => plus(sum, host.capacity), ZERO)

async function placeBatch(context: PlacementContext, ids: readonly string[], schedulers: number): Promise<Batch> {
  const { db, world } = context
  const done = await db.transaction(async (tx) => {
    const pending = await lockWaiting(tx, ids)
    if (pending.length === 0) return undefined
    const plan = await planFor(tx, context, pending, schedulers)
    await world.faults.reach('place.planned')
    const places = plan.choices.filter((choice): choice is Place => choice.kind === 'place')
    return { pending, plan, wanted: places.length, placed: await placeEach(tx, context, places) }
  })
  if (done === undefined) return { looked: 0, placed: 0, overtaken: 0, told: new Map() }
  const { pending, plan, wanted, placed } = done
  if (placed.length > 0) await world.faults.reach('place.committed')
  for (const { hostId, due } of placed) context.desk.hand(hostId, due)
  let overtaken = wanted - placed.length
  for (const shrink of plan.shrinks) if (!(await shrinkPool(db, shrink))) overtaken += 1
  return {
    looked: pending.length,
    placed: placed.length,
    overtaken,
    told: await explain(
      db,
      pending,
      plan.choices.filter((choice): choice is Wait => choice.kind === 'wait'),
    ),
  }
}

async function planFor(tx: Transaction, { world, config }: PlacementContext, pending: readonly LockedPending[], schedulers: number): Promise<PlacementPlan> {
  const tenants = [...new Set(pending.map(({ tenantId }) => tenantId))]
  const [hosts, pools, spread, aged] = await Promise.all([
    hostOffers(tx, config.timing.leaseMs),
    listPools(tx, 'held'),
    readSpread(tx, tenants),
    agedWaiting(tx, KEPT),
  ])
  const own = new Set(pending.map(({ id }) => id))
  return planPlacement(pending, hosts, pools, { spread, schedulers, pick: pickOf(world), rules: config.placement, kept: aged.filter(({ id }) => !own.has(id)) })
}

/** @returns false when something overtook the choice */
async function shrinkPool(db: Database, { pool, target }: PlacementPlan['shrinks'][number]): Promise<boolean> {
  return await db.transaction(async (tx) => {
    if (!(await resizePool(tx, pool, target))) return false
    tx.wake(wakePool(pool.hostId))
    return true
  })
}

async function explain(db: Database, pending: readonly LockedPending[], waits: readonly Wait[]): Promise<Map<string, Told>> {
  const known = new Map(pending.map((sandbox) => [sandbox.id, sandbox]))
  const told = new Map<string, Told>()
  for (const { sandboxId, generation, reason } of waits) {
    const sandbox = known.get(sandboxId)
    if (sandbox === undefined) continue
    if (sandbox.unschedulableReason !== reason) await explainSandboxWait(db, { id: sandboxId, generation }, reason)
    told.set(sandbox.kind, { reason, ids: [...(told.get(sandbox.kind)?.ids ?? []), sandboxId] })
  }
  return told
}
