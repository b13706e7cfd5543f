/** What waits for a host: whose turn it is, what a scheduler takes for itself, and what those that go on waiting are told. */
import { LIMITS } from '@sandglass/contract'
import type { TenantShare, Waiting } from '../domain/placement/fair-order.ts'
import type { PendingSandbox } from '../domain/placement/plan.ts'
import type { Queryable, Transaction } from './database.ts'
import { amountsOfRow, type SandboxRow } from './sandboxes.ts'
import { statement } from './statement.ts'

type Amounts = Pick<SandboxRow, 'vcpu_milli' | 'memory_mb' | 'disk_gb'>

type QueueRow = Amounts & {
  readonly id: string
  readonly tenant_id: string
  readonly age_ms: number
  readonly fair_weight: number
  readonly vcpu_milli_held: number
  readonly memory_mb_held: number
  readonly disk_gb_held: number
}

type PendingRow = Amounts &
  Pick<SandboxRow, 'id' | 'tenant_id' | 'generation' | 'region' | 'driver' | 'template_digest' | 'host_id' | 'unschedulable_reason' | 'pool_key'> & {
    readonly recovers: boolean
    readonly kind: string
    readonly is_aged: boolean
  }

const queue = statement<QueueRow>('sandboxes/queue')
const lockPending = statement<PendingRow>('sandboxes/lock-pending')
const agedPending = statement<PendingRow>('sandboxes/aged-pending')
const nextRetry = statement<{ due_in_ms: number | null }>('sandboxes/next-retry')
const explainWait = statement('sandboxes/explain-wait')
const explainKind = statement('sandboxes/explain-kind')
const explainAwaitedEnds = statement('sandboxes/explain-awaited-ends')

export type Queue = { readonly waiting: readonly Waiting[]; readonly tenants: readonly TenantShare[] }

/** `kind`: what is alike for placement. */
export type LockedPending = PendingSandbox & { readonly kind: string }

/**
 * Those that have waited longest of each tenant, `perTenant` at most, and of all of them the first of every tenant before the second of any, `most` at most.
 * @param find `butKinds`: those that are known to find no room
 */
export async function readQueue(
  db: Queryable,
  find: { readonly perTenant: number; readonly most: number; readonly butKinds: readonly string[] },
): Promise<Queue> {
  const rows = await db.run(queue, [find.perTenant, find.butKinds, find.most])
  const tenants = new Map<string, TenantShare>()
  for (const row of rows) {
    if (tenants.has(row.tenant_id)) continue
    const holds = { vcpuMilli: row.vcpu_milli_held, memoryMb: row.memory_mb_held, diskGb: row.disk_gb_held }
    tenants.set(row.tenant_id, { tenantId: row.tenant_id, weight: row.fair_weight, holds })
  }
  return { waiting: rows.map((row) => ({ id: row.id, tenantId: row.tenant_id, need: amountsOfRow(row), ageMs: row.age_ms })), tenants: [...tenants.values()] }
}

/** Those of them that no other scheduler has, in their order; they are this transaction's until its end. */
export const lockWaiting = async (tx: Transaction, ids: readonly string[]): Promise<LockedPending[]> =>
  (await tx.run(lockPending, [ids, LIMITS.placementKeepAfterMs])).map(pendingOf)

/** The longest waiting of those that room is kept for. */
export const agedWaiting = async (db: Queryable, most: number): Promise<PendingSandbox[]> =>
  (await db.run(agedPending, [LIMITS.placementKeepAfterMs, most])).map(pendingOf)

const pendingOf = (row: PendingRow): LockedPending => ({
  id: row.id,
  tenantId: row.tenant_id,
  generation: row.generation,
  region: row.region,
  driver: row.driver,
  templateDigest: row.template_digest,
  need: amountsOfRow(row),
  avoidHostId: row.host_id,
  unschedulableReason: row.unschedulable_reason,
  poolKey: row.pool_key,
  recovers: row.recovers,
  isAged: row.is_aged,
  kind: row.kind,
})

/** Milliseconds until a start may be tried again, if one waits for that. */
export const nextRetryInMs = async (db: Queryable): Promise<number | undefined> => (await db.run(nextRetry))[0]?.due_in_ms ?? undefined

export async function explainSandboxWait(db: Queryable, at: { id: string; generation: number }, reason: string): Promise<void> {
  await db.run(explainWait, [at.id, at.generation, reason])
}

/** All others of the kind that wait. */
export async function explainKindWait(db: Queryable, kind: string, reason: string, butIds: readonly string[]): Promise<void> {
  await db.run(explainKind, [kind, reason, butIds])
}

/** Those that cannot be placed before a host has proved an end. */
export async function explainAwaitedEndsOf(db: Queryable, leaseMs: number): Promise<void> {
  await db.run(explainAwaitedEnds, [leaseMs])
}
