/** What a tenant may hold and holds. */
import { LIMITS } from '@sandglass/contract'
import type { ExactAmounts } from '../domain/amounts.ts'
import type { QuotaUse } from '../domain/quota.ts'
import { foundNothing, type Queryable, type Transaction } from './database.ts'
import { amountsOfRow, dropQuotaMark, holdQuotaMark, type SandboxRow } from './sandboxes.ts'
import { statement } from './statement.ts'

const take = statement('quotas/take')
const giveBack = statement('quotas/give-back')
const dropKept = statement('quotas/drop-kept')
const read = statement<QuotaUse>('quotas/read')
const insert = statement('quotas/insert')

/** A tenant has no room for what it asks; the transaction is broken. */
export class QuotaUsedUp extends Error {
  override readonly name = 'QuotaUsedUp'
}

/**
 * @param isKept its record counts as kept, and no longer does
 * @throws QuotaUsedUp
 */
export async function takeQuota(tx: Transaction, tenantId: string, amounts: ExactAmounts, isKept = false): Promise<void> {
  try {
    await tx.run(take, [tenantId, amounts.vcpuMilli, amounts.memoryMb, amounts.diskGb, isKept ? 1 : 0])
  } catch (cause) {
    if (foundNothing(cause)) throw new QuotaUsedUp('the quota is used up', { cause })
    throw cause
  }
}

/** For one that is wanted running again: takes its amounts unless it holds them still. @throws QuotaUsedUp */
export async function retakeQuota(tx: Transaction, row: SandboxRow): Promise<void> {
  if (await holdQuotaMark(tx, row.id)) await takeQuota(tx, row.tenant_id, amountsOfRow(row), true)
}

/**
 * Held while the sandbox is wanted running or has a live assignment; the caller knows that neither is so any more.
 * The mark on the sandbox makes it happen once. What is not deleted and holds none is a record that is kept, and counts as one.
 */
export async function giveQuotaBack(tx: Transaction, row: SandboxRow, becomes: 'kept' | 'deleted'): Promise<void> {
  if (!(await dropQuotaMark(tx, row.id))) return
  const amounts = amountsOfRow(row)
  await tx.run(giveBack, [row.tenant_id, amounts.vcpuMilli, amounts.memoryMb, amounts.diskGb, becomes === 'kept' ? 1 : 0])
}

/** For one that is deleted while it holds no quota. */
export async function dropKeptRecord(tx: Transaction, row: SandboxRow): Promise<void> {
  await tx.run(dropKept, [row.tenant_id])
}

export const readQuota = async (tx: Queryable, tenantId: string): Promise<QuotaUse | undefined> => (await tx.run(read, [tenantId]))[0]

/** The quota that a new tenant gets. */
export async function insertDefaultQuota(tx: Transaction, tenantId: string): Promise<void> {
  await tx.run(insert, [
    tenantId,
    LIMITS.quotaRunningSandboxesDefault,
    LIMITS.quotaVcpuDefault * 1_000,
    LIMITS.quotaMemoryMbDefault,
    LIMITS.quotaDiskGbDefault,
    LIMITS.quotaKeptSandboxesDefault,
  ])
}
