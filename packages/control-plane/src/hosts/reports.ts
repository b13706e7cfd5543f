/**
 * What hosts report. Each item is applied in a transaction of its own and is safe to repeat, and some at once: they are about different sandboxes and
 * pools, and whatever is about the same one is kept in order by its guards. What comes too late is refused by its generation or epoch, answered `stale`,
 * and kept in the audit log.
 */
import type { HostReport, HostReportsAnswer } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { invariant } from '../domain/invariant.ts'
import type { LossReason } from '../domain/sandbox/end-plan.ts'
import { mayMove } from '../domain/sandbox/transitions.ts'
import { wakeHost, wakeOperation, wakePlacement, wakeSandbox } from '../events/wake-bus.ts'
import type { Faults } from '../faults/crash-point.ts'
import { applyLoss } from '../services/runtime-loss.ts'
import { releaseByEnded } from '../services/runtime-release.ts'
import { lockLeaseEpoch, lockLiveAssignment } from '../store/assignments.ts'
import { audit } from '../store/audit-log.ts'
import { type Database, type Transaction, together } from '../store/database.ts'
import { closeOperation } from '../store/operations.ts'
import { acknowledgePool } from '../store/pools.ts'
import { lockSandbox, moveLocked, type SandboxRow } from '../store/sandboxes.ts'
import { openUsage } from '../store/usage-intervals.ts'

type Result = HostReportsAnswer['results'][number]
type Report<Type extends HostReport['type']> = Extract<HostReport, { type: Type }>
type Source = { readonly hostId: string; readonly epoch: number }

const ACCEPTED: Result = { outcome: 'accepted', code: null }
const stale = (code: 'stale_generation' | 'stale_epoch'): Result => ({ outcome: 'stale', code })

/** Items that are applied at once. Each holds a connection of the pool that lease renewals share. */
const AT_ONCE = 4

export async function applyReports(context: Context, source: Source, items: readonly HostReport[]): Promise<HostReportsAnswer> {
  const db = context.db.for('hosts')
  const results: Result[] = []
  const waiting = [...items.entries()]
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, item] = next
      const result = await applyReport(context, db, source, item)
      context.metrics.count('sandglass_host_reports_total', { type: item.type, outcome: result.outcome })
      results[index] = result
    }
  }
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, items.length) }, lane))
  // One that cannot be applied fails the whole answer; the host then tells all again.
  for (const ended of lanes) if (ended.status === 'rejected') throw ended.reason
  return { results }
}

async function applyReport(context: Context, db: Database, source: Source, item: HostReport): Promise<Result> {
  const { metrics, world } = context
  const { faults } = world
  switch (item.type) {
    case 'ready': {
      const { result, startedInSeconds } = await db.transaction((tx) => applyReady(tx, faults, source, item))
      await faults.reach('ready.committed')
      if (startedInSeconds !== undefined) metrics.observeSeconds('sandglass_sandbox_start_duration_seconds', { path: item.path }, startedInSeconds)
      return result
    }
    case 'ended': {
      const { result, released } = await db.transaction(async (tx) => {
        const applied = await applyEnded(context, tx, source, item)
        await faults.reach('ended.open')
        return applied
      })
      await faults.reach('ended.committed')
      if (released) metrics.count('sandglass_runtimes_ended_total', { reason: item.reason })
      return result
    }
    case 'pool':
      return await db.transaction((tx) => applyAcknowledgement(tx, source, item))
    case 'refused':
      return await db.transaction((tx) => applyRefused(context, tx, source, item))
  }
}

type Ready = {
  readonly result: Result /** From the create, start or restart on; undefined when nothing became ready by this report. */
  readonly startedInSeconds?: number
}

/** The commit travels behind the statements: they act on rows that are locked and looked at, so that none of them can find itself too late. */
async function applyReady(tx: Transaction, faults: Faults, source: Source, report: Report<'ready'>): Promise<Ready> {
  const [row, assignment, epoch] = await together([lockSandbox(tx, report.sandbox), lockLiveAssignment(tx, report.sandbox), lockLeaseEpoch(tx, source.hostId)])
  // guard: ready.gen
  if (row === undefined || assignment?.host_id !== source.hostId || assignment.generation !== report.generation || row.generation !== report.generation) {
    return { result: await refuseAsStale(tx, source, report, 'stale_generation') }
  }
  // guard: ready.epoch
  if (assignment.epoch !== epoch || source.epoch !== epoch) return { result: await refuseAsStale(tx, source, report, 'stale_epoch') }
  if (row.observed === 'ready') return { result: ACCEPTED }
  invariant(mayMove('prove', row.observed), `sandbox ${row.id} cannot prove from ${row.observed}`)
  const written = together([
    moveLocked(tx, row, 'prove', { evidence: report.evidence, startTimingsMs: report.timings_ms, startPath: report.path }),
    openUsage(tx, row, assignment),
    // Of the create or of the start that this is the end of; of a restart by policy nobody asked.
    closeOperation(tx, row.operation_id, null),
  ])
  // Answered below; a fault in between must not leave it unheard.
  written.catch(() => undefined)
  // Said before the commit is sent; this process hears it below, from the answers.
  for (const wake of [wakeSandbox(row.id, row.generation), wakeOperation(row.operation_id)]) tx.wake({ ...wake, elsewhere: true })
  await faults.reach('ready.open')
  tx.finish()
  const [moved, , operationId] = await written
  // Whoever waits in this process is told what came of it, and need not read it.
  if (operationId !== undefined) tx.wake(wakeOperation(operationId, moved))
  return { result: ACCEPTED, startedInSeconds: secondsToReady(moved) }
}

function secondsToReady({ ready_at: readyAt, wanted_since: wantedSince, created_at: createdAt }: SandboxRow): number {
  const since = wantedSince ?? createdAt
  return Math.max(0, (readyAt ?? since).getTime() - since.getTime()) / 1_000
}

/** An older version than the current one frees nothing: the newer one is due and will be acknowledged in its turn. */
async function applyAcknowledgement(tx: Transaction, source: Source, report: Report<'pool'>): Promise<Result> {
  const freed = await acknowledgePool(tx, source.hostId, report.key, report.version)
  if (freed !== undefined && freed > 0) tx.wake(wakePlacement)
  return ACCEPTED
}

const LOSSES: Readonly<Record<Report<'ended'>['reason'], LossReason>> = {
  // An end that nobody ordered for the current generation: the runtime is gone all the same.
  ordered: 'runtime_exited',
  start_failed: 'start_failed',
  runtime_exited: 'runtime_exited',
  recovered: 'recovered',
}

async function applyEnded(
  context: Context,
  tx: Transaction,
  source: Source,
  report: Report<'ended'>,
): Promise<{ readonly result: Result; readonly released: boolean }> {
  const outcome = await releaseByEnded(
    tx,
    {
      sandboxId: report.sandbox,
      hostId: source.hostId,
      upto: report.upto,
      poolVersion: report.pool_version,
      loss: { reason: LOSSES[report.reason], detail: report.detail },
    },
    context.config.timing,
  )
  const result = outcome === 'older_than_live' ? await refuseAsStale(tx, source, report, 'stale_generation') : ACCEPTED
  return { result, released: outcome === 'released' }
}

/** Proves nothing: the same ticket may still arrive again. The generation is retired, and its end order asks for the proof. */
async function applyRefused(context: Context, tx: Transaction, source: Source, report: Report<'refused'>): Promise<Result> {
  // A ticket that came too late for its term is minted again by the sweep, with a fresh one.
  if (report.code === 'ticket_expired') {
    tx.wake(wakeHost(source.hostId, report.sandbox))
    return ACCEPTED
  }
  const row = await lockSandbox(tx, report.sandbox)
  const assignment = row === undefined ? undefined : await lockLiveAssignment(tx, row.id)
  if (row === undefined || assignment?.host_id !== source.hostId || assignment.generation !== report.generation || row.generation !== report.generation) {
    return await refuseAsStale(tx, source, report, 'stale_generation')
  }
  // A repeated ticket may be refused although the first was taken up and proved.
  if (row.observed === 'ready') return ACCEPTED
  await applyLoss(tx, row, { reason: 'start_refused', detail: `${report.code}: ${report.detail}` }, context.config.timing)
  return ACCEPTED
}

async function refuseAsStale(
  tx: Transaction,
  source: Source,
  report: Exclude<HostReport, { type: 'pool' }>,
  code: 'stale_generation' | 'stale_epoch',
): Promise<Result> {
  await audit(tx, {
    tenantId: null,
    actor: { type: 'host', id: source.hostId },
    action: 'report.stale',
    subject: report.sandbox,
    detail: { type: report.type, generation: report.type === 'ended' ? report.upto : report.generation, epoch: source.epoch, code },
  })
  return stale(code)
}
