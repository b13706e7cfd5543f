/** What operators change of hosts: cordon, drain, labels, removal; and what drains find to end. The lock of them all is the host's own row. */
import { type HostLabels, LIMITS, type RestartPolicy } from '@sandglass/contract'
import { invariant } from '../domain/invariant.ts'
import type { Queryable, Transaction } from './database.ts'
import type { SandboxRow } from './sandboxes.ts'
import { statement } from './statement.ts'

const lockNamed = statement<{ id: string; name: string }>('hosts/lock-named')
const cordon = statement<{ host_id: string }>('hosts/cordon')
const uncordon = statement<{ host_id: string }>('hosts/uncordon')
const drain = statement<{ changed: boolean }>('hosts/drain')
const draining = statement<DrainingRow>('hosts/draining')
const lockDrainOf = statement<{ ends_in_ms: number }>('hosts/lock-drain')
const labels = statement<{ labels: HostLabels }>('hosts/labels')
const setLabels = statement('hosts/set-labels')
const endLease = statement('hosts/end-lease')
const countLive = statement<{ live: number; wanted: number }>('hosts/count-live')
const remove = statement('hosts/remove')
const comeBack = statement<{ was_removed: boolean }>('hosts/return')

export type DrainingRow = {
  readonly host_id: string
  readonly sandbox_id: string
  readonly generation: number
  readonly observed: SandboxRow['observed']
  readonly restart_policy: RestartPolicy
  /** Until what still runs there is ended; below zero when that time has come. */
  readonly ends_in_ms: number
}

/** The host of that id, or up to `limit` hosts of that name, locked. */
export const lockHostsNamed = async (tx: Transaction, idOrName: string, limit: number): Promise<{ id: string; name: string }[]> =>
  await tx.run(lockNamed, [idOrName, limit])

/** @returns false when it was so already; the same with the two below */
export const cordonHostRow = async (tx: Transaction, hostId: string): Promise<boolean> => (await tx.run(cordon, [hostId])).length === 1

export const uncordonHostRow = async (tx: Transaction, hostId: string): Promise<boolean> => (await tx.run(uncordon, [hostId])).length === 1

/** @param deadlineSeconds undefined: the default one for a drain that begins, and no other for one that is under way */
export const drainHostRow = async (tx: Transaction, hostId: string, deadlineSeconds: number | undefined): Promise<boolean> =>
  (await tx.run(drain, [hostId, deadlineSeconds ?? null, LIMITS.drainSecondsDefault]))[0]?.changed ?? false

/** @param endMs how long before its deadline a drain ends what still runs; the same below */
export const drainingSandboxes = async (db: Queryable, endMs: number, limit: number): Promise<DrainingRow[]> => await db.run(draining, [endMs, limit])

/** @returns milliseconds until the drain ends what still runs; undefined when the host is not being drained any more */
export const lockDrain = async (tx: Transaction, hostId: string, endMs: number): Promise<number | undefined> =>
  (await tx.run(lockDrainOf, [hostId, endMs]))[0]?.ends_in_ms

export async function readHostLabels(tx: Transaction, hostId: string): Promise<HostLabels> {
  const [row] = await tx.run(labels, [hostId])
  invariant(row !== undefined, `locked host ${hostId} has no row`)
  return row.labels
}

export async function setHostLabels(tx: Transaction, hostId: string, next: HostLabels): Promise<void> {
  await tx.run(setLabels, [hostId, JSON.stringify(next)])
}

/** What is live on a host behind the placements that were under way, with its lease taken from it. */
export async function endLeaseAndCount(tx: Transaction, hostId: string): Promise<{ readonly live: number; readonly wanted: number }> {
  await tx.run(endLease, [hostId])
  return (await tx.run(countLive, [hostId]))[0] ?? { live: 0, wanted: 0 }
}

export async function removeHostRow(tx: Transaction, hostId: string): Promise<void> {
  await tx.run(remove, [hostId])
}

/** Locks the host's row. @returns true for a host that was removed */
export const returnHost = async (tx: Transaction, hostId: string): Promise<boolean> => (await tx.run(comeBack, [hostId]))[0]?.was_removed ?? false
