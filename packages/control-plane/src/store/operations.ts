/** Operations: a change under way, and how it went. */
import type { Operation, Problem } from '@sandglass/contract'
import { wakeOperation } from '../events/wake-bus.ts'
import type { Queryable, Transaction } from './database.ts'
import { statement } from './statement.ts'

export type OperationRow = {
  readonly id: string
  readonly kind: Operation['kind']
  readonly status: Operation['status']
  readonly sandbox_id: string
  readonly problem: Problem | null
  readonly created_at: Date
  readonly ended_at: Date | null
}

const insert = statement('operations/insert')
const end = statement<{ id: string }>('operations/end')
const find = statement<OperationRow>('operations/find')
const findOfSandbox = statement<OperationRow>('operations/find-of-sandbox')
const endedAmong = statement<{ id: string }>('operations/ended-among')

export async function insertOperation(tx: Transaction, operation: { id: string; tenantId: string; kind: Operation['kind']; sandboxId: string }): Promise<void> {
  await tx.run(insert, [operation.id, operation.tenantId, operation.kind, operation.sandboxId])
}

/** Ends an operation, if it is pending. @returns its id; the caller wakes who waits for it */
export const closeOperation = async (tx: Transaction, id: string, problem: Problem | null): Promise<string | undefined> =>
  (await tx.run(end, [id, problem === null ? null : JSON.stringify(problem)]))[0]?.id

/** As `closeOperation`, and wakes who waits for it. */
export async function endOperation(tx: Transaction, id: string, problem: Problem | null): Promise<void> {
  if ((await closeOperation(tx, id, problem)) !== undefined) tx.wake(wakeOperation(id))
}

export const findOperation = async (db: Queryable, tenantId: string, id: string): Promise<OperationRow | undefined> => (await db.run(find, [tenantId, id]))[0]

/** Of what happens to a sandbox once. */
export const findOperationOfSandbox = async (db: Queryable, sandboxId: string, kind: 'sandbox.create' | 'sandbox.delete'): Promise<OperationRow | undefined> =>
  (await db.run(findOfSandbox, [sandboxId, kind]))[0]

export const endedOperationsAmong = async (db: Queryable, ids: readonly string[]): Promise<string[]> =>
  (await db.run(endedAmong, [[...ids]])).map((row) => row.id)
