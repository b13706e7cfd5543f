/** Assignments: which host holds which generation of which sandbox. The row is the lock of a runtime. */
import { invariant } from '../domain/invariant.ts'
import { orOvertaken, type Queryable, type Transaction } from './database.ts'
import { statement } from './statement.ts'

export type AssignmentRow = {
  readonly id: string
  readonly generation: number
  readonly host_id: string
  readonly epoch: number
  readonly vcpu_milli: number
  readonly memory_mb: number
  readonly disk_gb: number
  /** Of the claim that it was made by; null when it took no unit of a pool. */
  readonly pool_version: number | null
}

const insert = statement<InsertedAssignment>('assignments/insert')
const insertClaimed = statement<InsertedAssignment>('assignments/insert-claimed')
const lockLive = statement<AssignmentRow>('assignments/lock-live')
const leaseOf = statement<LeaseOf>('assignments/lease-of')
const release = statement<{ host_id: string }>('assignments/release')
const overdue = statement<{ sandbox_id: string; generation: number }>('assignments/overdue')
const spread = statement<{ tenant_id: string; host_id: string; live: number }>('assignments/spread')
const fenced = statement<{ id: string; sandbox_id: string }>('assignments/fenced')

/** The unique indexes that an insert can run into, as `violates` names them: place.one, and one assignment per generation. */
export const ASSIGNMENT_INDEXES = ['assignments_one_live', 'assignments_sandbox_id_generation_key']

/** What its ticket says beyond the sandbox: the lease as this statement read it, and the pool as the claim left it. */
export type InsertedAssignment = {
  readonly epoch: number
  readonly seq: number
  readonly pool_key: string | null
  readonly pool_version: number | null
  readonly pool_target: number | null
}

export type NewAssignment = {
  readonly id: string
  readonly sandboxId: string
  readonly hostId: string
  readonly epoch: number
  /** The pool that a unit is taken of; null: none is. */
  readonly poolKey: string | null
}

/** @throws Overtaken when the host no longer holds that epoch, or its pool has no unit of it; the transaction is broken then */
export async function insertAssignment(tx: Transaction, { id, sandboxId, hostId, epoch, poolKey }: NewAssignment): Promise<InsertedAssignment> {
  const values = [id, sandboxId, hostId, epoch]
  const [row] = await orOvertaken(poolKey === null ? tx.run(insert, values) : tx.run(insertClaimed, [...values, poolKey]))
  invariant(row !== undefined, `an assignment of ${sandboxId} was made and not told`)
  return row
}

/** How many live ones each of these tenants has on which host. */
export async function readSpread(db: Queryable, tenantIds: readonly string[]): Promise<Map<string, Map<string, number>>> {
  const byTenant = new Map(tenantIds.map((tenantId) => [tenantId, new Map<string, number>()]))
  for (const row of await db.run(spread, [tenantIds])) byTenant.get(row.tenant_id)?.set(row.host_id, row.live)
  return byTenant
}

export const lockLiveAssignment = async (tx: Transaction, sandboxId: string): Promise<AssignmentRow | undefined> => (await tx.run(lockLive, [sandboxId]))[0]

/** `fenced_epoch`: the epoch that the last fence of the host ended; null: there was none. */
type LeaseOf = { readonly epoch: number; readonly fenced_epoch: number | null }

/** The host's lease, locked until the end of the transaction: it renews and changes its epoch behind it. */
export const lockLease = async (tx: Transaction, hostId: string): Promise<LeaseOf | undefined> => (await tx.run(leaseOf, [hostId]))[0]

export const lockLeaseEpoch = async (tx: Transaction, hostId: string): Promise<number | undefined> => (await lockLease(tx, hostId))?.epoch

/** Also gives the amounts back to the host and closes the usage interval. The caller holds the row's lock and the proof. */
export async function releaseAssignment(tx: Transaction, assignment: AssignmentRow, by: 'ended' | 'fence'): Promise<void> {
  const rows = await tx.run(release, [assignment.id, by])
  invariant(rows.length === 1, `locked assignment ${assignment.id} was not released`)
}

export const overdueStarts = async (db: Queryable, timeoutMs: number, limit: number): Promise<{ sandbox_id: string; generation: number }[]> =>
  await db.run(overdue, [timeoutMs, limit])

export const fencedAssignments = async (db: Queryable, hostId: string | undefined, limit: number): Promise<{ id: string; sandbox_id: string }[]> =>
  await db.run(fenced, [hostId ?? null, limit])
