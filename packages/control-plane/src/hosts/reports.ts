/**
 * What hosts report. Each item is applied in a transaction of its own and is safe to repeat, and some at once: they are about different sandboxes and
 * pools, and whatever is about the same one is kept in order by its guards. What comes too late is refused: an item of an older generation is answered
 * `stale`, and all that is said in an older epoch 409 `stale_epoch`. Each is in the audit log once.
 */
import { CodedError, type HostReport, type HostReportsAnswer } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { invariant } from '../domain/invariant.ts'
import type { LossReason } from '../domain/sandbox/end-plan.ts'
import { mayMove } from '../domain/sandbox/transitions.ts'
import { wakeHost, wakeOperation, wakePlacement, wakeSandbox } from '../events/wake-bus.ts'
import type { Faults } from '../faults/crash-point.ts'
import { applyLoss } from '../services/runtime-loss.ts'
import { releaseByEnded } from '../services/runtime-release.ts'
import { lockLeaseEpoch, lockLiveAssignment } from '../store/assignments.ts'
import { auditLateReports, type LateReport } from '../store/audit-log.ts'
import { type Database, type Transaction, together } from '../store/database.ts'
import { readLease } from '../store/hosts.ts'
import { closeOperation } from '../store/operations.ts'
import { acknowledgePool } from '../store/pools.ts'
import { lockSandbox, moveLocked, type SandboxRow } from '../store/sandboxes.ts'
import { openUsage } from '../store/usage-intervals.ts'
import { staleEpoch } from './stale-epoch.ts'

type Result = HostReportsAnswer['results'][number]
type Report<Type extends HostReport['type']> = Extract<HostReport, { type: Type }>
type Source = { readonly hostId: string; readonly epoch: number }

const ACCEPTED: Result = { outcome: 'accepted', code: null }
const stale = (code: 'stale_generation' | 'stale_epoch'): Result => ({ outcome: 'stale', code })

/** Items that are applied at once. Each holds a connection of the pool that lease renewals share. */
const AT_ONCE = 4

/** @throws CodedError `stale_epoch`, `host_not_found` */
export async function applyReports(context: Context, source: Source, items: readonly HostReport[]): Promise<HostReportsAnswer> {
  const db = context.db.for('hosts')
  // What a host says of a start is waited for: that asks in its own transaction (ready.epoch).
  if (items.some((item) => item.type !== 'ready')) await requireEpoch(db, source, items)
  const results: Result[] = []
  let told: number | undefined
  const waiting = [...items.entries()]
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, item] = next
      const { result, epoch = told } = await applyReport(context, db, source, item)
      context.metrics.count('sandglass_host_reports_total', { type: item.type, outcome: result.outcome })
      results[index] = result
      told = epoch
    }
  }
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, items.length) }, lane))
  // One that cannot be applied fails the whole answer; the host then tells all again.
  for (const ended of lanes) if (ended.status === 'rejected') throw ended.reason
  if (told !== undefined) throw staleEpoch(source.epoch, told)
  return { results }
}

/** Before a host's stable facts, which are true in every epoch: it learns that it speaks for one that is over. */
async function requireEpoch(db: Database, source: Source, items: readonly HostReport[]): Promise<void> {
  const lease = await readLease(db, source.hostId)
  if (lease === undefined) throw new CodedError('host_not_found')
  if (lease.epoch === source.epoch && lease.held) return
  if (lease.epoch >= source.epoch) await auditLateReports(db, source, 'stale_epoch', items.filter(isOfSandbox).map(lateOf))
  throw staleEpoch(source.epoch, lease.epoch)
}

/** `epoch`: of the host, when it is not the one that the report was made in. */
type Applied = { readonly result: Result; readonly epoch?: number }

async function applyReport(context: Context, db: Database, source: Source, item: HostReport): Promise<Applied> {
  const { metrics, world } = context
  const { faults } = world
  switch (item.type) {
    case 'ready': {
      const { startedInSeconds, ...applied } = await db.transaction((tx) => applyReady(tx, faults, source, item))
      await faults.reach('ready.committed')
      if (startedInSeconds !== undefined) metrics.observeSeconds('sandglass_sandbox_start_duration_seconds', { path: item.path }, startedInSeconds)
      return applied
    }
    case 'ended': {
      const { result, released } = await db.transaction(async (tx) => {
        const applied = await applyEnded(context, tx, source, item)
        await faults.reach('ended.open')
        return applied
      })
      await faults.reach('ended.committed')
      if (released) metrics.count('sandglass_runtimes_ended_total', { reason: item.reason })
      return { result }
    }
    case 'pool':
      return { result: await db.transaction((tx) => applyAcknowledgement(tx, source, item)) }
    case 'refused':
      return { result: await db.transaction((tx) => applyRefused(context, tx, source, item)) }
  }
}

type Ready = Applied & {
  /** From the create, start or restart on; undefined when nothing became ready by this report. */
  readonly startedInSeconds?: number
}

/** The commit travels behind the statements: they act on rows that are locked and looked at, so that none of them can find itself too late. */
async function applyReady(tx: Transaction, faults: Faults, source: Source, report: Report<'ready'>): Promise<Ready> {
  const [row, assignment, epoch] = await together([lockSandbox(tx, report.sandbox), lockLiveAssignment(tx, report.sandbox), lockLeaseEpoch(tx, source.hostId)])
  // guard: ready.epoch: of whom it is said, and by whom
  if (epoch !== undefined && source.epoch !== epoch) return { result: await refuseAsStale(tx, source, report, 'stale_epoch'), epoch }
  // guard: ready.gen
  if (row === undefined || assignment?.host_id !== source.hostId || assignment.generation !== report.generation || row.generation !== report.generation) {
    return { result: await refuseAsStale(tx, source, report, 'stale_generation') }
  }
  if (assignment.epoch !== epoch) return { result: await refuseAsStale(tx, source, report, 'stale_epoch') }
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

type ReportOfSandbox = Exclude<HostReport, { type: 'pool' }>

async function refuseAsStale(tx: Transaction, source: Source, report: ReportOfSandbox, code: 'stale_generation' | 'stale_epoch'): Promise<Result> {
  await auditLateReports(tx, source, code, [lateOf(report)])
  return stale(code)
}

const isOfSandbox = (report: HostReport): report is ReportOfSandbox => report.type !== 'pool'
const lateOf = (report: ReportOfSandbox): LateReport => ({
  type: report.type,
  sandboxId: report.sandbox,
  generation: report.type === 'ended' ? report.upto : report.generation,
})
