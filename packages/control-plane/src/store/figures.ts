/** What the metrics tell of the whole installation. */
import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

export type Figures = {
  readonly hosts_lost: number
  readonly hosts_cordoned: number
  readonly hosts_draining: number
  readonly hosts_live: number
  readonly vcpu_milli_capacity: number
  readonly vcpu_milli_reserved: number
  readonly memory_mb_capacity: number
  readonly memory_mb_reserved: number
  readonly disk_gb_capacity: number
  readonly disk_gb_reserved: number
  readonly lost_host_sandboxes: number
  readonly pool_target: number
  readonly pool_held: number
  readonly oldest_pending_seconds: number
  readonly oldest_wake_seconds: number
  readonly oldest_unsealed_seconds: number
}

const figures = statement<Figures>('database/figures')

/** @param leaseMs without a renewal for so long a host is lost */
export const readFigures = async (db: Queryable, leaseMs: number): Promise<Figures | undefined> => (await db.run(figures, [leaseMs]))[0]
