/**
 * Rows of warm pools: units that hosts hold for runtimes that nobody has asked for yet. SQL counts units and never knows members.
 *
 * Every change of a target is a new version, from the version that was read; a claim makes one too (`assignments/insert-claimed`).
 */
import { parsePoolSpec } from '@sandglass/contract'
import type { ExactAmounts } from '../domain/amounts.ts'
import type { PoolUnits } from '../domain/placement/room.ts'
import type { Demand } from '../domain/pool/plan.ts'
import type { Queryable, Transaction } from './database.ts'
import { reserveOnHost } from './hosts.ts'
import type { SandboxRow } from './sandboxes.ts'
import { statement } from './statement.ts'

type PoolRow = {
  readonly host_id: string
  readonly key: string
  readonly spec: string
  readonly epoch: number
  readonly memory_mb: number
  readonly disk_gb: number
  readonly target: number
  readonly held: number
  readonly version: number
}

export type DuePoolOrder = Pick<PoolRow, 'key' | 'spec' | 'epoch' | 'version' | 'target'>

type DemandRow = Pick<SandboxRow, 'driver' | 'template_name' | 'template_digest' | 'vcpu_milli' | 'memory_mb' | 'disk_gb' | 'network_mode'> & {
  readonly arrivals: number
  readonly recent: number
}

const ensure = statement('pools/ensure')
const resize = statement<{ added: number; memory_mb: number; disk_gb: number }>('pools/resize')
const acknowledge = statement<{ freed: number }>('pools/acknowledge')
const fenced = statement<{ host_id: string }>('pools/fenced')
const lockFenced = statement('pools/lock-fenced')
const fence = statement<{ fenced: number }>('pools/fence')
const dueOrders = statement<DuePoolOrder>('pools/due-orders')
const list = statement<PoolRow>('pools/list')
const demand = statement<DemandRow>('pools/demand')
const pressure = statement<{ waiting: boolean }>('pools/pressure')

export type PoolAt = { readonly hostId: string; readonly key: string; readonly epoch: number; readonly version: number }

export async function ensurePool(tx: Transaction, pool: { hostId: string; key: string; spec: string; memoryMb: number; diskGb: number }): Promise<void> {
  await tx.run(ensure, [pool.hostId, pool.key, pool.spec, pool.memoryMb, pool.diskGb])
}

/**
 * @returns false when the pool has gone on since it was read
 * @throws Overtaken when what is to be added has no room
 */
export async function resizePool(tx: Transaction, at: PoolAt, target: number): Promise<boolean> {
  const [row] = await tx.run(resize, [at.hostId, at.key, at.epoch, at.version, target])
  if (row === undefined) return false
  if (row.added === 0) return true
  await reserveOnHost(tx, at.hostId, { vcpuMilli: 0, memoryMb: row.added * row.memory_mb, diskGb: row.added * row.disk_gb })
  return true
}

/** @returns how many units came free, or undefined when the version is not the current one or was acknowledged before */
export const acknowledgePool = async (tx: Transaction, hostId: string, key: string, version: number): Promise<number | undefined> =>
  (await tx.run(acknowledge, [hostId, key, version]))[0]?.freed

export const hostsWithFencedPools = async (db: Queryable, hostId: string | undefined): Promise<string[]> =>
  (await db.run(fenced, [hostId ?? null])).map((row) => row.host_id)

/** @returns how many pools the host's newer epoch emptied */
export async function fencePools(tx: Transaction, hostId: string): Promise<number> {
  await tx.run(lockFenced, [hostId])
  return (await tx.run(fence, [hostId]))[0]?.fenced ?? 0
}

export const duePoolOrders = async (db: Queryable, hostId: string): Promise<DuePoolOrder[]> => await db.run(dueOrders, [hostId])

/** @param which `held`: those that hold something */
export async function listPools(db: Queryable, which: 'held' | 'all'): Promise<PoolUnits[]> {
  const rows = await db.run(list, [which === 'all'])
  return rows.map((row) => ({
    hostId: row.host_id,
    key: row.key,
    epoch: row.epoch,
    version: row.version,
    target: row.target,
    held: row.held,
    spec: parsePoolSpec(row.spec, row.key),
    unit: unitOf(row),
  }))
}

const unitOf = (row: Pick<PoolRow, 'memory_mb' | 'disk_gb'>): ExactAmounts => ({ vcpuMilli: 0, memoryMb: row.memory_mb, diskGb: row.disk_gb })

/** Creates of the last `windowS` seconds by what a member of theirs would be, and how many of them in the last `recentS`. */
export async function poolDemand(db: Queryable, windowS: number, recentS: number): Promise<Demand[]> {
  const rows = await db.run(demand, [windowS, recentS])
  return rows.map((row) => ({
    driver: row.driver,
    template: { name: row.template_name, digest: row.template_digest },
    amounts: { vcpuMilli: row.vcpu_milli, memoryMb: row.memory_mb, diskGb: row.disk_gb },
    networkMode: row.network_mode,
    arrivals: row.arrivals,
    recent: row.recent,
  }))
}

/** Does anything wait for room on a host? */
export const isAnythingWaitingForRoom = async (db: Queryable): Promise<boolean> => (await db.run(pressure))[0]?.waiting ?? false
