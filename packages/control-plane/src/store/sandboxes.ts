/** Rows of sandboxes. What one is wanted to be and is seen as changes through `moveSandbox` only. */
import { LIMITS, type RestartPolicy, type Sandbox, type SandboxStatus, type StartPath, type TimeoutAction } from '@sandglass/contract'
import type { ExactAmounts } from '../domain/amounts.ts'
import { InvariantBroken, invariant } from '../domain/invariant.ts'
import { type Desired, MOVES, type MoveName, mayMove } from '../domain/sandbox/transitions.ts'
import { wakeEvent, wakeSandbox } from '../events/wake-bus.ts'
import type { Actor } from './audit-log.ts'
import type { Queryable, Transaction } from './database.ts'
import { statement } from './statement.ts'

export type SandboxRow = {
  readonly id: string
  readonly tenant_id: string
  readonly name: string | null
  readonly region: string
  readonly desired: Desired
  readonly generation: number
  readonly observed: SandboxStatus
  readonly status_reason: string | null
  readonly unschedulable_reason: string | null
  readonly template_name: string
  readonly template_digest: string
  readonly vcpu_milli: number
  readonly memory_mb: number
  readonly disk_gb: number
  readonly driver: string
  readonly evidence: Record<string, string> | null
  readonly network_mode: Sandbox['network']['mode']
  readonly env: Record<string, string>
  readonly metadata: Record<string, string>
  readonly ttl_seconds: number
  readonly idle_timeout_seconds: number | null
  readonly on_timeout: TimeoutAction
  readonly host_id: string | null
  readonly start_attempts: number
  readonly quota_held: boolean
  readonly start_timings_ms: Record<string, number> | null
  readonly start_path: StartPath | null
  readonly pool_key: string | null
  readonly traceparent: string | null
  readonly restart_policy: RestartPolicy
  readonly restarts: number
  readonly operation_id: string
  readonly created_at: Date
  /** Since when it is wanted running again; null: since its create. */
  readonly wanted_since: Date | null
  readonly ready_at: Date | null
  readonly expires_at: Date
  readonly idle_at: Date | null
  readonly ended_at: Date | null
}

export type NewSandbox = {
  readonly id: string
  readonly tenantId: string
  readonly name: string | null
  readonly region: string
  readonly template: { readonly name: string; readonly digest: string }
  readonly amounts: ExactAmounts
  readonly driver: string
  readonly networkMode: string
  readonly env: Readonly<Record<string, string>>
  readonly metadata: Readonly<Record<string, string>>
  readonly ttlSeconds: number
  readonly idleTimeoutSeconds: number | null
  readonly onTimeout: TimeoutAction
  readonly operationId: string
  /** The pool whose members could become it. */
  readonly poolKey: string
  /** Of the create; null when it is in no trace. */
  readonly traceparent: string | null
  readonly restartPolicy: RestartPolicy
}

type Amounts = Pick<SandboxRow, 'vcpu_milli' | 'memory_mb' | 'disk_gb'>
export const amountsOfRow = (row: Amounts): ExactAmounts => ({ vcpuMilli: row.vcpu_milli, memoryMb: row.memory_mb, diskGb: row.disk_gb })

const insert = statement('sandboxes/insert')
const move = statement<SandboxRow>('sandboxes/move')
const lock = statement<SandboxRow>('sandboxes/lock')
const lockOfTenant = statement<SandboxRow>('sandboxes/lock-of-tenant')
const find = statement<SandboxRow>('sandboxes/find')
const list = statement<SandboxRow & { created_micros: number }>('sandboxes/list')
const listNamed = statement<SandboxRow & { created_micros: number }>('sandboxes/list-named')
const listLive = statement<SandboxRow & { created_micros: number }>('sandboxes/list-live')
const extend = statement<SandboxRow>('sandboxes/extend')
const setNameAndMetadata = statement<SandboxRow>('sandboxes/set-name-and-metadata')
const expired = statement<{ id: string; tenant_id: string }>('sandboxes/expired')
const nextExpiry = statement<{ due_in_ms: number | null }>('sandboxes/next-expiry')
const isExpired = statement<{ expired: boolean }>('sandboxes/is-expired')
const touch = statement('sandboxes/touch')
const idle = statement<{ id: string; tenant_id: string }>('sandboxes/idle')
const isIdle = statement<{ idle: boolean | null }>('sandboxes/is-idle')
const dropQuota = statement<{ id: string }>('sandboxes/drop-quota')
const holdQuota = statement<{ id: string }>('sandboxes/hold-quota')
const restartsInARow = statement<{ restarts: number }>('sandboxes/restarts-in-a-row')
const setOperation = statement<SandboxRow>('sandboxes/set-operation')
const countByStatus = statement<{ observed: SandboxStatus; sandboxes: number }>('sandboxes/count-by-status')

/** The unique index on names, as `violates` names it. */
export const NAME_INDEX = 'sandboxes_name'

/** Who asked for a sandbox, for the audit log. */
export type Asked = { readonly actor: Actor; readonly requestId: string }

/** With its create operation, its first event and the audit row. */
export async function insertSandbox(tx: Transaction, sandbox: NewSandbox, { actor, requestId }: Asked): Promise<void> {
  // First, since the commit may travel right behind the statement.
  tx.wake(wakeEvent(sandbox.tenantId))
  await tx.run(insert, [
    sandbox.id,
    sandbox.tenantId,
    sandbox.name,
    sandbox.region,
    sandbox.template.name,
    sandbox.template.digest,
    sandbox.amounts.vcpuMilli,
    sandbox.amounts.memoryMb,
    sandbox.amounts.diskGb,
    sandbox.driver,
    sandbox.networkMode,
    JSON.stringify(sandbox.env),
    JSON.stringify(sandbox.metadata),
    sandbox.ttlSeconds,
    sandbox.operationId,
    sandbox.poolKey,
    sandbox.traceparent,
    actor.type,
    actor.id,
    requestId,
    sandbox.restartPolicy,
    sandbox.idleTimeoutSeconds,
    sandbox.onTimeout,
  ])
}

export type MoveDetails = {
  readonly statusReason?: string
  readonly hostId?: string
  readonly retryAfterMs?: number
  readonly evidence?: Readonly<Record<string, string>>
  readonly startTimingsMs?: Readonly<Record<string, number>>
  readonly startPath?: StartPath
  readonly operationId?: string
  /** A run begins; so many restarts by policy led to it, one after the other. */
  readonly restarts?: number
  /** Of the request that a run begins by. */
  readonly traceparent?: string | undefined
  /** Of a run that begins and cannot be placed yet. */
  readonly unschedulableReason?: string | undefined
  /** Attempts of this run that count; a placement counts itself. Default: those so far. */
  readonly startAttempts?: number
}

/**
 * Applies a move of the transition table.
 * @param at the generation that the decision was made for
 * @returns the row as it now is, or undefined when the sandbox has gone on meanwhile
 */
export async function moveSandbox(
  tx: Transaction,
  at: { readonly id: string; readonly generation: number },
  name: MoveName,
  details: MoveDetails = {},
): Promise<SandboxRow | undefined> {
  const { from, to, desired, generation } = MOVES[name]
  const [row] = await tx.run(move, [
    at.id,
    at.generation,
    [...from],
    to,
    desired,
    generation === 'next' ? 1 : 0,
    details.statusReason ?? null,
    details.hostId ?? null,
    details.retryAfterMs ?? null,
    details.evidence === undefined ? null : JSON.stringify(details.evidence),
    details.startTimingsMs === undefined ? null : JSON.stringify(details.startTimingsMs),
    details.operationId ?? null,
    details.startPath ?? null,
    details.restarts ?? null,
    name === 'stop' || name === 'halt' ? LIMITS.stoppedLifeSeconds : null,
    details.traceparent ?? null,
    details.startAttempts ?? null,
    details.unschedulableReason ?? null,
  ])
  if (row !== undefined) tx.wake(wakeSandbox(row.id, row.generation))
  return row
}

/** A move of a row that this transaction has locked and looked at: that it does not apply is a defect. */
export async function moveLocked(tx: Transaction, row: SandboxRow, name: MoveName, details: MoveDetails = {}): Promise<SandboxRow> {
  invariant(mayMove(name, row.observed), `sandbox ${row.id} cannot ${name} from ${row.observed}`)
  const moved = await moveSandbox(tx, row, name, details)
  if (moved === undefined) throw new InvariantBroken(`locked sandbox ${row.id} did not ${name}`)
  return moved
}

export const lockSandbox = async (tx: Transaction, id: string): Promise<SandboxRow | undefined> => (await tx.run(lock, [id]))[0]

export const lockSandboxOfTenant = async (tx: Transaction, tenantId: string, idOrName: string): Promise<SandboxRow | undefined> =>
  (await tx.run(lockOfTenant, [tenantId, idOrName]))[0]

export const findSandbox = async (db: Queryable, tenantId: string, idOrName: string): Promise<SandboxRow | undefined> =>
  (await db.run(find, [tenantId, idOrName]))[0]

export type SandboxFilter = {
  readonly includeEnded: boolean
  readonly status: SandboxStatus | undefined
  readonly template: string | undefined
  readonly name: string | undefined
  readonly metadata: Readonly<Record<string, string>> | undefined
}

/** A place in a list ordered by (time, id). */
export type PagePosition = { readonly micros: number; readonly id: string }

export async function listSandboxes(
  db: Queryable,
  tenantId: string,
  filter: SandboxFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<(SandboxRow & { created_micros: number })[]> {
  const living = filter.name === undefined ? listLive : listNamed
  return await db.run(filter.includeEnded ? list : living, [
    tenantId,
    filter.status ?? null,
    filter.template ?? null,
    filter.name ?? null,
    filter.metadata === undefined ? null : JSON.stringify(filter.metadata),
    after?.micros ?? null,
    after?.id ?? null,
    limit,
  ])
}

export const extendSandboxRow = async (tx: Transaction, row: SandboxRow, ttlSeconds: number): Promise<SandboxRow | undefined> =>
  (await tx.run(extend, [row.tenant_id, row.id, ttlSeconds]))[0]

export const setSandboxNameAndMetadata = async (
  tx: Transaction,
  row: SandboxRow,
  change: { readonly name?: string | null; readonly metadata?: Readonly<Record<string, string>> },
): Promise<SandboxRow | undefined> =>
  (
    await tx.run(setNameAndMetadata, [
      row.tenant_id,
      row.id,
      change.name !== undefined,
      change.name ?? null,
      change.metadata === undefined ? null : JSON.stringify(change.metadata),
    ])
  )[0]

export const expiredSandboxes = async (db: Queryable, limit: number): Promise<{ id: string; tenant_id: string }[]> => await db.run(expired, [limit])

/** Milliseconds until the next deadline; zero or less when one has passed. @param idleCounts also of those that are idle */
export const nextExpiryInMs = async (db: Queryable, idleCounts: boolean): Promise<number | undefined> =>
  (await db.run(nextExpiry, [idleCounts]))[0]?.due_in_ms ?? undefined

export const isSandboxExpired = async (tx: Transaction, id: string): Promise<boolean> => (await tx.run(isExpired, [id]))[0]?.expired ?? false

/** Somebody uses the run of this generation. */
export async function touchSandbox(tx: Transaction, at: { readonly id: string; readonly generation: number }): Promise<void> {
  await tx.run(touch, [at.id, at.generation])
}

export const idleSandboxes = async (db: Queryable, limit: number): Promise<{ id: string; tenant_id: string }[]> => await db.run(idle, [limit])

export const isSandboxIdle = async (tx: Transaction, id: string): Promise<boolean> => (await tx.run(isIdle, [id]))[0]?.idle ?? false

/** Restarts by policy that led to the run at hand, without a steady time in between. */
export const restartsOf = async (tx: Transaction, id: string): Promise<number> =>
  (await tx.run(restartsInARow, [id, LIMITS.restartSteadySeconds]))[0]?.restarts ?? 0

/** Names the operation that is pending for it; nothing that is wanted changes. */
export async function setSandboxOperation(tx: Transaction, row: SandboxRow, operationId: string): Promise<SandboxRow> {
  const [changed] = await tx.run(setOperation, [row.id, operationId])
  invariant(changed !== undefined, `locked sandbox ${row.id} was not changed`)
  return changed
}

/** @returns true for the one caller that has to take the amounts */
export const holdQuotaMark = async (tx: Transaction, id: string): Promise<boolean> => (await tx.run(holdQuota, [id])).length === 1

/** @returns true for the one caller that has to give the amounts back */
export const dropQuotaMark = async (tx: Transaction, id: string): Promise<boolean> => (await tx.run(dropQuota, [id])).length === 1

export const countSandboxesByStatus = async (db: Queryable): Promise<{ observed: SandboxStatus; sandboxes: number }[]> => await db.run(countByStatus)
