/** Routes are derived, not stored: where the live, current, ready generation of a sandbox runs, while its host's lease has time left. */
import type { Access, Role, Route, SandboxStatus } from '@sandglass/contract'
import type { LeaseSeen } from '../domain/host/fencing.ts'
import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

type RouteRow = {
  readonly api_key_id: string
  readonly tenant_id: string
  readonly role: Role
  /** Null like the rest: the key's tenant has no such sandbox. */
  readonly observed: SandboxStatus | null
  readonly status_reason: string | null
  readonly generation: number | null
  readonly host_id: string | null
  readonly epoch: number | null
  readonly seq: number | null
  readonly data_plane_url: string | null
  readonly valid_for_ms: number | null
  /** Null like the next one: nobody's absence ends it, or it is not ready. */
  readonly idle_seconds: number | null
  readonly idle_timeout_seconds: number | null
}

const read = statement<RouteRow>('routes/read')

/** So much of its idle time may go unnoted, so that not each question is a write: a twelfth, five seconds of the shortest. */
const UNNOTED = 1 / 12

export type AccessRead = {
  readonly access: Access
  /** Of the route's host, as this read found it; null without a route. */
  readonly lease: LeaseSeen | null
  /** That it is used must be noted, or the time in which nobody did counts on. */
  readonly toTouch: boolean
}

/** @returns `no_key` for one that opens nothing, `no_sandbox` also for someone else's */
export async function readAccess(db: Queryable, keySha256: string, sandboxId: string, leaseMs: number): Promise<AccessRead | 'no_key' | 'no_sandbox'> {
  const [row] = await db.run(read, [keySha256, sandboxId, leaseMs])
  if (row === undefined) return 'no_key'
  const { tenant_id, api_key_id, role, observed: status, status_reason } = row
  if (status === null) return 'no_sandbox'
  const { idle_seconds: idle, idle_timeout_seconds: timeout } = row
  const toTouch = idle !== null && timeout !== null && idle > timeout * UNNOTED
  return { access: { tenant_id, api_key_id, role, status, status_reason, route: routeOf(row) }, lease: leaseOf(row), toTouch }
}

function routeOf(row: RouteRow): Route | null {
  const { host_id, generation, epoch, data_plane_url, valid_for_ms } = row
  if (host_id === null || generation === null || epoch === null || data_plane_url === null || valid_for_ms === null || valid_for_ms <= 0) return null
  return { host_id, data_plane_url, generation, epoch, valid_for_ms }
}

const leaseOf = ({ host_id: hostId, epoch, seq }: RouteRow): LeaseSeen | null =>
  hostId === null || epoch === null || seq === null ? null : { hostId, epoch, seq }
