/**
 * Drains: reads what runs or starts on hosts that are drained, plans (domain/host/drain.ts), and retires each that is due in a transaction of its own,
 * which locks it and its host's drain and decides once more: it may have gone on, and the host may be uncordoned by now. Nothing is released here.
 */
import { LIMITS } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { type Draining, planDrain } from '../domain/host/drain.ts'
import { applyLoss } from '../services/runtime-loss.ts'
import { lockLiveAssignment } from '../store/assignments.ts'
import { audit } from '../store/audit-log.ts'
import type { Database } from '../store/database.ts'
import { type DrainingRow, drainingSandboxes, lockDrain } from '../store/host-changes.ts'
import { lockSandbox } from '../store/sandboxes.ts'
import type { Outcome } from './reconciler.ts'

const BATCH = 200

const END_MS = LIMITS.drainEndSeconds * 1_000

type DrainContext = Pick<Context, 'config'> & { readonly db: Database }

export async function reconcileDrains(context: DrainContext): Promise<Outcome> {
  const rows = await drainingSandboxes(context.db, END_MS, BATCH)
  const { retire, nextInMs } = planDrain(rows.map(drainingOf))
  let retired = 0
  for (const one of retire) if (await retireDrained(context, one)) retired += 1
  return { actions: retired, nextInMs: retire.length === BATCH ? 0 : nextInMs }
}

const drainingOf = (row: DrainingRow): Draining => ({
  hostId: row.host_id,
  sandboxId: row.sandbox_id,
  generation: row.generation,
  observed: row.observed,
  policy: row.restart_policy,
  endsInMs: row.ends_in_ms,
})

/** @returns false when something overtook the plan */
async function retireDrained(context: DrainContext, planned: Draining): Promise<boolean> {
  return await context.db.transaction(async (tx) => {
    const row = await lockSandbox(tx, planned.sandboxId)
    if (row === undefined || row.generation !== planned.generation) return false
    const assignment = await lockLiveAssignment(tx, row.id)
    if (assignment?.generation !== planned.generation || assignment.host_id !== planned.hostId) return false
    // guard: drain.live
    const endsInMs = await lockDrain(tx, planned.hostId, END_MS)
    if (endsInMs === undefined || planDrain([{ ...planned, observed: row.observed, endsInMs }]).retire.length === 0) return false
    await applyLoss(tx, row, { reason: 'host_drained', detail: null }, context.config.timing)
    await audit(tx, {
      tenantId: row.tenant_id,
      actor: { type: 'system', id: 'drain' },
      action: 'sandbox.retire',
      subject: row.id,
      detail: { reason: 'host_drained', host_id: planned.hostId, generation: planned.generation },
    })
    return true
  })
}
