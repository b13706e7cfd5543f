/**
 * Deletes: a tombstone. The generation advances (guard: bump.delete), so a start that is still on its way is refused everywhere; the rows' amounts go
 * back when the host proves the end. Works from every state, and a second delete finds the first one's operation.
 */
import { CodedError, newOperationId, problemOf } from '@sandglass/contract'
import type { Context } from '../context.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import { wakeHost, wakePlacement } from '../events/wake-bus.ts'
import type { Principal } from '../store/api-keys.ts'
import { lockLiveAssignment } from '../store/assignments.ts'
import { type Actor, audit } from '../store/audit-log.ts'
import type { Transaction } from '../store/database.ts'
import { endOperation, findOperationOfSandbox, insertOperation, type OperationRow } from '../store/operations.ts'
import { dropKeptRecord, giveQuotaBack } from '../store/quotas.ts'
import { lockSandboxOfTenant, moveLocked, type SandboxRow } from '../store/sandboxes.ts'
import { sandboxNotFound } from './not-found.ts'

export type DeleteCause = { readonly actor: Actor; readonly requestId?: string; readonly reason: 'requested' | 'ttl_expired' | 'idle' }

const REASONS = {
  requested: 'deleted: on request',
  ttl_expired: 'ttl_expired: its time to live is over',
  idle: 'idle_timeout: nobody has used it for its idle timeout',
} as const

const OVERTAKEN = 'The sandbox was deleted before this was done.'

/** @param row locked by this transaction */
export async function deleteLocked(tx: Transaction, context: Pick<Context, 'world'>, row: SandboxRow, cause: DeleteCause): Promise<OperationRow> {
  if (row.desired !== 'deleted') await entomb(tx, context, row, cause)
  const operation = await findOperationOfSandbox(tx, row.id, 'sandbox.delete')
  if (operation === undefined) throw new InvariantBroken(`deleted sandbox ${row.id} has no operation`)
  return operation
}

async function entomb(tx: Transaction, context: Pick<Context, 'world'>, row: SandboxRow, cause: DeleteCause): Promise<void> {
  const assignment = await lockLiveAssignment(tx, row.id)
  const operationId = newOperationId(context.world.random)
  const statusReason = REASONS[cause.reason]
  await insertOperation(tx, { id: operationId, tenantId: row.tenant_id, kind: 'sandbox.delete', sandboxId: row.id })
  await moveLocked(tx, row, assignment === undefined ? 'discard' : 'terminate', { statusReason, operationId })
  await endOperation(tx, row.operation_id, problemOf(new CodedError('sandbox_ended', OVERTAKEN)))
  await audit(tx, {
    tenantId: row.tenant_id,
    actor: cause.actor,
    action: 'sandbox.delete',
    subject: row.id,
    ...(cause.requestId === undefined ? {} : { requestId: cause.requestId }),
    detail: { reason: cause.reason },
  })
  if (assignment === undefined) {
    await endOperation(tx, operationId, null)
    await (row.quota_held ? giveQuotaBack(tx, row, 'deleted') : dropKeptRecord(tx, row))
  } else {
    tx.wake(wakeHost(assignment.host_id, row.id))
  }
  tx.wake(wakePlacement)
}

/** @throws CodedError `sandbox_not_found` */
export async function deleteSandbox(context: Context, request: { principal: Principal; idOrName: string; requestId: string }): Promise<OperationRow> {
  const { principal } = request
  const operation = await context.db.transaction(async (tx) => {
    const row = await lockSandboxOfTenant(tx, principal.tenantId, request.idOrName)
    if (row === undefined) throw sandboxNotFound(request.idOrName)
    const deleted = await deleteLocked(tx, context, row, { actor: principal.actor, requestId: request.requestId, reason: 'requested' })
    await context.world.faults.reach('delete.open')
    return deleted
  })
  await context.world.faults.reach('delete.committed')
  return operation
}
