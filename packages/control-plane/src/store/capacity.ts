/** What the fleet offers and what waits for it, as figures. */
import type { ExactAmounts } from '../domain/amounts.ts'
import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

type ClassRow = {
  readonly region: string
  readonly class: string | null
  readonly hosts_ready: number
  readonly hosts_cordoned: number
  readonly hosts_lost: number
  readonly vcpu_milli_offered: number
  readonly memory_mb_offered: number
  readonly disk_gb_offered: number
  readonly vcpu_milli_reserved: number
  readonly memory_mb_reserved: number
  readonly disk_gb_reserved: number
  readonly vcpu_milli_free: number
  readonly memory_mb_free: number
  readonly disk_gb_free: number
  readonly pool_target: number
  readonly pool_held: number
}

type DemandRow = {
  readonly region: string
  readonly driver: string
  readonly code: string
  readonly waiting: number
  readonly vcpu_milli: number
  readonly memory_mb: number
  readonly disk_gb: number
  readonly vcpu_milli_largest: number
  readonly memory_mb_largest: number
  readonly disk_gb_largest: number
  readonly oldest_seconds: number
}

const classes = statement<ClassRow>('capacity/classes')
const demand = statement<DemandRow>('capacity/demand')
const startLead = statement<StartLead>('capacity/start-lead')

export type ClassFigures = Pick<ClassRow, 'region' | 'class' | 'hosts_ready' | 'hosts_cordoned' | 'hosts_lost' | 'pool_target' | 'pool_held'> & {
  readonly offered: ExactAmounts
  readonly reserved: ExactAmounts
  /** Of each resource the most on one host. */
  readonly largestFree: ExactAmounts
}

/** Of one region, isolation and reason. */
export type DemandFigures = Pick<DemandRow, 'region' | 'driver' | 'code' | 'waiting' | 'oldest_seconds'> & {
  readonly asked: ExactAmounts
  readonly largest: ExactAmounts
}

export type StartLead = { readonly samples: number; readonly median_seconds: number | null }

export async function readClassFigures(db: Queryable, leaseMs: number): Promise<ClassFigures[]> {
  const rows = await db.run(classes, [leaseMs])
  return rows.map((row) => ({
    ...row,
    offered: { vcpuMilli: row.vcpu_milli_offered, memoryMb: row.memory_mb_offered, diskGb: row.disk_gb_offered },
    reserved: { vcpuMilli: row.vcpu_milli_reserved, memoryMb: row.memory_mb_reserved, diskGb: row.disk_gb_reserved },
    largestFree: { vcpuMilli: row.vcpu_milli_free, memoryMb: row.memory_mb_free, diskGb: row.disk_gb_free },
  }))
}

export async function readDemandFigures(db: Queryable): Promise<DemandFigures[]> {
  const rows = await db.run(demand)
  return rows.map((row) => ({
    ...row,
    asked: { vcpuMilli: row.vcpu_milli, memoryMb: row.memory_mb, diskGb: row.disk_gb },
    largest: { vcpuMilli: row.vcpu_milli_largest, memoryMb: row.memory_mb_largest, diskGb: row.disk_gb_largest },
  }))
}

export const readStartLead = async (db: Queryable): Promise<StartLead> => (await db.run(startLead))[0] ?? { samples: 0, median_seconds: null }
