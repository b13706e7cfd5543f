/**
 * Starts and stops: one transaction that changes what is wanted under the row's lock (domain/sandbox/wanted-plan.ts), advances the generation, and makes the
 * operation, the event, the audit row and the wake-ups of it. What is wanted already changes nothing, so both are safe twice and at once: of a start and a
 * stop at the same time the later turn at the lock decides, and whoever waits for the other one is told so.
 *
 * A stop gives nothing back. The end order goes to the host as for a delete, and host's amounts and quota are released by its proof (guard: release.proof).
 * A start takes the quota unless it is held still, and is placed from scratch once no earlier assignment is live: it never waits inside this request.
 */
import { CodedError, newOperationId, problemOf } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { quotaRefusal } from '../domain/quota.ts'
import { planStart, planStop, type WantedPlan } from '../domain/sandbox/wanted-plan.ts'
import { wakeHost, wakePlacement } from '../events/wake-bus.ts'
import type { Principal } from '../store/api-keys.ts'
import { type AssignmentRow, lockLiveAssignment } from '../store/assignments.ts'
import { type Actor, audit } from '../store/audit-log.ts'
import { type Transaction, together } from '../store/database.ts'
import { endOperation, findOperation, insertOperation } from '../store/operations.ts'
import { giveQuotaBack, QuotaUsedUp, readQuota, retakeQuota } from '../store/quotas.ts'
import { amountsOfRow, findSandbox, lockSandboxOfTenant, moveLocked, type SandboxRow, setSandboxOperation } from '../store/sandboxes.ts'
import { once } from './idempotency.ts'
import { sandboxEnded, sandboxNotFound } from './not-found.ts'

export type RunRequest = {
  readonly want: 'start' | 'stop'
  readonly principal: Principal
  readonly idOrName: string
  readonly idempotencyKey: string | undefined
  readonly requestId: string
  /** Of the request's span, or what the caller gave when nothing is recorded here. */
  readonly traceparent: string | undefined
}

export type RunAnswer = {
  readonly sandboxId: string
  /** What can be waited for; undefined: it was so already. */
  readonly operationId: string | undefined
  readonly replayed: boolean
}

const STOP_REASON = 'stopped: on request; what was written in it is gone'

/** What a start or a stop is on whose behalf, and what its record says. */
type Cause = Pick<RunRequest, 'want' | 'traceparent'> & { readonly actor: Actor; readonly requestId: string | undefined; readonly statusReason: string }

/** @throws CodedError `sandbox_not_found`, `sandbox_ended`, `quota_exceeded`, and those of idempotency keys */
export async function runSandbox(context: Context, request: RunRequest): Promise<RunAnswer> {
  const { faults } = context.world
  try {
    const answer = await context.db.transaction(async (tx) => {
      const asked = await runLocked(tx, context, request)
      await faults.reach(`${request.want}.open`)
      return asked
    })
    await faults.reach(`${request.want}.committed`)
    return answer
  } catch (error) {
    if (!(error instanceof QuotaUsedUp)) throw error
    const { tenantId, tenantName } = request.principal
    const row = await findSandbox(context.db, tenantId, request.idOrName)
    if (row === undefined) throw sandboxNotFound(request.idOrName)
    throw quotaRefusal(tenantName, await readQuota(context.db, tenantId), amountsOfRow(row))
  }
}

async function runLocked(tx: Transaction, context: Context, request: RunRequest): Promise<RunAnswer> {
  const { want, principal } = request
  const row = await lockSandboxOfTenant(tx, principal.tenantId, request.idOrName)
  if (row === undefined) throw sandboxNotFound(request.idOrName)
  const assignment = await lockLiveAssignment(tx, row.id)
  const plan = want === 'start' ? planStart(row.observed) : planStop(row.observed, assignment !== undefined)
  const pending = plan.step === 'wait' ? await pendingOperationOf(tx, row) : undefined
  const operationId = pending ?? newOperationId(context.world.random)
  const isSo = plan.step !== 'wait' && plan.step !== 'move'
  const key = { tenantId: principal.tenantId, route: `POST /v1/sandboxes/{id}/${want}`, key: request.idempotencyKey, body: { sandbox: row.id } }
  // Where nothing is to be waited for, the key keeps the sandbox.
  const first = await once(tx, { ...key, subjectId: isSo ? row.id : operationId })
  if (first.replayed) return { sandboxId: row.id, operationId: first.subjectId === row.id ? undefined : first.subjectId, replayed: true }
  const answer = { sandboxId: row.id, operationId: isSo ? undefined : operationId, replayed: false }
  if (plan.step === 'refuse') throw sandboxEnded(row)
  if (plan.step === 'rest') await rest(tx, row)
  if (isSo || pending !== undefined) return answer
  const operation = insertOperation(tx, { id: operationId, tenantId: row.tenant_id, kind: `sandbox.${want}`, sandboxId: row.id })
  const change =
    plan.step === 'wait'
      ? setSandboxOperation(tx, row, operationId)
      : apply(tx, { ...request, actor: principal.actor, statusReason: STOP_REASON }, { row, assignment, operationId, move: plan.move })
  await together([operation, change])
  return answer
}

/** Stops one that is wanted running, for a cause of the system's own. @param row locked by this transaction @returns false when it is not */
export async function stopLocked(
  tx: Transaction,
  { world }: Pick<Context, 'world'>,
  row: SandboxRow,
  by: { actor: Actor; statusReason: string },
): Promise<boolean> {
  const assignment = await lockLiveAssignment(tx, row.id)
  const plan = planStop(row.observed, assignment !== undefined)
  if (plan.step !== 'move') return false
  const operationId = newOperationId(world.random)
  await insertOperation(tx, { id: operationId, tenantId: row.tenant_id, kind: 'sandbox.stop', sandboxId: row.id })
  await apply(tx, { ...by, want: 'stop', requestId: undefined, traceparent: undefined }, { row, assignment, operationId, move: plan.move })
  return true
}

/** What the release of the last assignment does to one that is stopping (runtime-release.ts), for one that has none. */
async function rest(tx: Transaction, row: SandboxRow): Promise<void> {
  await moveLocked(tx, row, 'rest')
  await endOperation(tx, row.operation_id, null)
  await giveQuotaBack(tx, row, 'kept')
}

/** Of what is on its way: a create, a start or a stop. A restart by policy has none, and neither has the end of one that failed. */
async function pendingOperationOf(tx: Transaction, row: SandboxRow): Promise<string | undefined> {
  const operation = await findOperation(tx, row.tenant_id, row.operation_id)
  return operation?.status === 'pending' ? operation.id : undefined
}

type Change = {
  readonly row: SandboxRow
  readonly assignment: AssignmentRow | undefined
  readonly operationId: string
  readonly move: Extract<WantedPlan, { step: 'move' }>['move']
}

/** Order of locks: sandbox and assignment are held, the quota is last. */
async function apply(
  tx: Transaction,
  { want, actor, requestId, traceparent, statusReason }: Cause,
  { row, assignment, operationId, move }: Change,
): Promise<void> {
  const unschedulableReason = assignment && `awaiting_end: host ${assignment.host_id} has not proved the end of its earlier run`
  await together([
    moveLocked(tx, row, move, move === 'start' ? { operationId, restarts: 0, traceparent, unschedulableReason } : { operationId, statusReason }),
    // Whoever waited for what was wanted before.
    endOperation(tx, row.operation_id, problemOf(move === 'start' ? STARTED_AGAIN : STOPPED_BEFORE)),
    audit(tx, { tenantId: row.tenant_id, actor, action: `sandbox.${want}`, subject: row.id, ...(requestId === undefined ? {} : { requestId }) }),
  ])
  switch (move) {
    case 'start':
      tx.wake(wakePlacement)
      return await retakeQuota(tx, row)
    case 'stop':
      if (assignment !== undefined) tx.wake(wakeHost(assignment.host_id, row.id))
      return
    case 'halt':
      await endOperation(tx, operationId, null)
      return await giveQuotaBack(tx, row, 'kept')
  }
}

const STARTED_AGAIN = new CodedError('operation_overtaken', 'The sandbox was started again before its stop was done.')
const STOPPED_BEFORE = new CodedError('sandbox_stopped', 'The sandbox was stopped before it was ready.')
