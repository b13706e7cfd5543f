/**
 * Placement: reads what waits and what hosts offer, plans (domain/placement/plan.ts), and applies each choice in a transaction of its own.
 * Two schedulers that chose the same room: one commits, the other finds its statement without a row, rolls back and plans again.
 */
import type { Context } from '../context.ts'
import { type PendingSandbox, type Placement, type PlacementPlan, planPlacement } from '../domain/placement/plan.ts'
import { wakePool } from '../events/wake-bus.ts'
import { applyPlacement } from '../services/place-sandbox.ts'
import type { Database } from '../store/database.ts'
import { hostOffers } from '../store/hosts.ts'
import { listPools, resizePool } from '../store/pools.ts'
import { explainSandboxWait, nextRetryInMs, pendingSandboxes } from '../store/sandboxes.ts'
import type { Outcome } from './reconciler.ts'

/** Sandboxes looked at in one run. */
const BATCH = 500

/** Before planning again for what was overtaken. */
const REPLAN_MS = 5

export async function reconcilePlacement(context: Pick<Context, 'config' | 'world' | 'desk'> & { readonly db: Database }): Promise<Outcome> {
  const { db } = context
  const pending = await pendingSandboxes(db, BATCH)
  if (pending.length === 0) return { actions: 0, nextInMs: await nextRetryInMs(db) }
  const [hosts, pools] = await Promise.all([hostOffers(db, context.config.timing.leaseMs), listPools(db, 'held')])
  const { choices, shrinks } = planPlacement(pending, hosts, pools)
  await context.world.faults.reach('place.planned')
  let placed = 0
  let overtaken = 0
  for (const choice of choices) {
    if (choice.kind === 'wait') await explain(db, pending, choice)
    else if (await applyPlacement(context, choice)) placed += 1
    else overtaken += 1
  }
  for (const shrink of shrinks) if (!(await shrinkPool(db, shrink))) overtaken += 1
  const more = overtaken > 0 || (placed > 0 && pending.length === BATCH)
  return { actions: placed, nextInMs: more ? REPLAN_MS : await nextRetryInMs(db) }
}

/** @returns false when something overtook the choice */
async function shrinkPool(db: Database, { pool, target }: PlacementPlan['shrinks'][number]): Promise<boolean> {
  return await db.transaction(async (tx) => {
    if (!(await resizePool(tx, pool, target))) return false
    tx.wake(wakePool(pool.hostId))
    return true
  })
}

async function explain(db: Database, pending: readonly PendingSandbox[], action: Extract<Placement, { kind: 'wait' }>): Promise<void> {
  const known = pending.find((sandbox) => sandbox.id === action.sandboxId)?.unschedulableReason
  if (known !== action.reason) await explainSandboxWait(db, { id: action.sandboxId, generation: action.generation }, action.reason)
}
