/**
 * The change feed. An event is appended in the transaction that made the change, without a position (moves of a sandbox append theirs themselves); the
 * sealer gives positions, and readers see only what has one.
 */
import { LIMITS } from '@sandglass/contract'
import { wakeEvent } from '../events/wake-bus.ts'
import type { Database, Queryable, Transaction } from './database.ts'
import { statement } from './statement.ts'

export type Event = {
  readonly tenantId: string
  readonly type: string
  readonly sandboxId: string
  readonly generation: number
  readonly reason?: string
}

export type SealedEventRow = {
  readonly position: number
  readonly type: string
  readonly sandbox_id: string
  readonly generation: number
  readonly reason: string | null
  readonly at: Date
}

const append = statement('events/append')
const sealTurn = statement('events/seal-turn')
const seal = statement<{ sealed: number; held: number }>('events/seal')
const heads = statement<{ tenant_id: string; head: number }>('events/heads')
const read = statement<SealedEventRow>('events/read')
const deleteOld = statement('events/delete-old')

export async function recordEvent(tx: Transaction, event: Event): Promise<void> {
  // First, since the commit may travel right behind the statement.
  tx.wake(wakeEvent(event.tenantId))
  await tx.run(append, [event.tenantId, event.type, event.sandboxId, event.generation, event.reason ?? null])
}

/**
 * Durable before it is told: a position that a reader has seen is never given again.
 * @param holdMs how long an event waits for older transactions at most
 * @returns how many were sealed, and how many of those looked at wait for older transactions
 */
export async function sealEvents(db: Database, limit: number, holdMs: number): Promise<{ sealed: number; held: number }> {
  return await db.transaction(async (tx) => {
    await tx.run(sealTurn)
    const [outcome] = await tx.run(seal, [limit, holdMs])
    return outcome ?? { sealed: 0, held: 0 }
  })
}

/** The last position of each feed; absent: nothing was ever sealed. */
export async function feedHeads(db: Queryable, tenantIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await db.run(heads, [[...tenantIds]])
  return new Map(rows.map((row) => [row.tenant_id, row.head]))
}

export const readEvents = async (db: Queryable, tenantId: string, after: number, limit: number): Promise<SealedEventRow[]> =>
  await db.run(read, [tenantId, after, limit])

export const deleteOldEvents = async (db: Queryable, limitPerTenant: number): Promise<number> =>
  (await db.run(deleteOld, [LIMITS.eventRetentionSeconds, LIMITS.eventsKeptPerTenant, limitPerTenant])).length
