/** Leases of hosts as their observers see them, and their end. */
import type { LeaseSeen } from '../domain/host/fencing.ts'
import type { Queryable, Transaction } from './database.ts'
import { statement } from './statement.ts'

const held = statement<{ host_id: string; epoch: number; seq: number }>('hosts/held-leases')
const fence = statement<{ epoch: number }>('hosts/fence')

export const heldLeases = async (db: Queryable): Promise<LeaseSeen[]> => (await db.run(held)).map(({ host_id: hostId, epoch, seq }) => ({ hostId, epoch, seq }))

/**
 * Takes the lease away from the host, as it was seen.
 * @returns the epoch that begins, which nobody holds; undefined when the host has gone on since
 */
export const fenceLease = async (tx: Transaction, { hostId, epoch, seq }: LeaseSeen): Promise<number | undefined> =>
  (await tx.run(fence, [hostId, epoch, seq]))[0]?.epoch
