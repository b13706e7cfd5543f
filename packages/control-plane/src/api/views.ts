/** Rows as clients see them. */
import {
  type ApiKey,
  type Host,
  type JoinToken,
  LIMITS,
  type Operation,
  type Sandbox,
  type SandboxStatus,
  type Template,
  writableLayerOf,
} from '@sandglass/contract'
import type { Timing } from '../config.ts'
import { publicAmounts } from '../domain/amounts.ts'
import { drainView } from '../domain/host/drain.ts'
import type { ApiKeyRow } from '../store/api-keys.ts'
import { capacityOfRow, type HostRow } from '../store/hosts.ts'
import type { JoinTokenRow } from '../store/join-tokens.ts'
import type { OperationRow } from '../store/operations.ts'
import { amountsOfRow, type SandboxRow } from '../store/sandboxes.ts'
import type { TemplateRow } from '../store/templates.ts'

const time = (date: Date): string => date.toISOString()
const timeOrNull = (date: Date | null): string | null => date?.toISOString() ?? null

const ON_A_HOST: readonly SandboxStatus[] = ['assigned', 'starting', 'ready', 'stopping', 'terminating']

/** @param gatewayUrls all of the fleet, at least one */
export function sandboxView(row: SandboxRow, gatewayUrls: readonly [string, ...string[]], nowMs: number): Sandbox {
  const gateways = gatewaysOf(row.id, gatewayUrls)
  return {
    id: row.id,
    name: row.name,
    status: row.observed,
    status_reason: row.status_reason,
    unschedulable_reason: row.unschedulable_reason,
    desired: row.desired,
    writable_layer: writableLayerOf(row.observed),
    restart_policy: row.restart_policy,
    restarts: restartsShown(row, nowMs),
    generation: row.generation,
    template: { name: row.template_name, digest: row.template_digest },
    resources: publicAmounts(amountsOfRow(row)),
    isolation: row.evidence === null ? null : { driver: row.driver, evidence: row.evidence },
    network: { mode: row.network_mode },
    env_names: Object.keys(row.env),
    metadata: row.metadata,
    region: row.region,
    host_id: ON_A_HOST.includes(row.observed) ? row.host_id : null,
    gateway_url: gateways[0],
    gateway_urls: gateways,
    ttl_seconds: row.ttl_seconds,
    idle_timeout_seconds: row.idle_timeout_seconds,
    on_timeout: row.on_timeout,
    created_at: time(row.created_at),
    ready_at: timeOrNull(row.ready_at),
    expires_at: time(row.expires_at),
    idle_at: timeOrNull(row.idle_at),
    ended_at: timeOrNull(row.ended_at),
    start_path: row.start_path,
    start_timings_ms: row.start_timings_ms,
    operation_id: row.operation_id,
  }
}

/** Sandboxes are spread over gateways, each always at the same one, which then knows their hosts; its id is random enough to choose by. */
function gatewaysOf(sandboxId: string, urls: readonly [string, ...string[]]): [string, ...string[]] {
  const at = Number.parseInt(sandboxId.slice(-4), 36) % urls.length || 0
  return [urls[at] ?? urls[0], ...urls.slice(at + 1), ...urls.slice(0, at)]
}

/** The row counts until the next restart begins a new one (store/sql/sandboxes/restarts-in-a-row.sql, which decides); one that is over is shown as that. */
function restartsShown({ restarts, ready_at, ended_at }: SandboxRow, nowMs: number): number {
  if (ready_at === null) return restarts
  return (ended_at?.getTime() ?? nowMs) - ready_at.getTime() >= LIMITS.restartSteadySeconds * 1_000 ? 0 : restarts
}

export function operationView(row: OperationRow): Operation {
  return {
    id: row.id,
    kind: row.kind,
    status: row.status,
    sandbox_id: row.sandbox_id,
    problem: row.problem,
    created_at: time(row.created_at),
    ended_at: timeOrNull(row.ended_at),
  }
}

export function apiKeyView(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    tenant_id: row.tenant_id,
    created_at: time(row.created_at),
    expires_at: timeOrNull(row.expires_at),
    revoked_at: timeOrNull(row.revoked_at),
    last_used_at: timeOrNull(row.last_used_at),
  }
}

export function joinTokenView(row: JoinTokenRow): JoinToken {
  return {
    id: row.id,
    role: row.role,
    status: row.status,
    labels: row.labels,
    created_at: time(row.created_at),
    expires_at: time(row.expires_at),
    used_at: timeOrNull(row.used_at),
    used_by: row.used_by,
  }
}

export function templateView(row: TemplateRow): Template {
  return { name: row.name, digest: row.digest, size_bytes: row.size_bytes, created_at: time(row.created_at) }
}

/** `leaseMs`, `fenceGraceMs`: as this installation has them. */
export function hostView(row: HostRow, { leaseMs, fenceGraceMs }: Pick<Timing, 'leaseMs' | 'fenceGraceMs'>): Host {
  const { capacity, reserved } = capacityOfRow(row)
  return {
    id: row.id,
    name: row.name,
    region: row.region,
    status: row.status,
    cordoned: row.cordoned,
    drain: drainOf(row),
    labels: row.labels,
    epoch: row.epoch,
    version: row.version,
    capacity: publicAmounts(capacity),
    reserved: publicAmounts(reserved),
    drivers: row.drivers,
    sandboxes: row.sandboxes,
    pool: { target: row.pool_target, held: row.pool_held, memory_mb: row.pool_memory_mb, disk_gb: row.pool_disk_gb },
    lease: {
      state: row.held ? (row.late ? 'late' : 'held') : 'fenced',
      lease_seconds: leaseMs / 1_000,
      fence_grace_seconds: fenceGraceMs / 1_000,
      fenced_at: timeOrNull(row.fenced_at),
    },
    renewed_at: timeOrNull(row.renewed_at),
    lease_age_seconds: row.lease_age_seconds === null ? null : Math.round(row.lease_age_seconds * 1_000) / 1_000,
    created_at: time(row.created_at),
  }
}

function drainOf(row: HostRow): Host['drain'] {
  if (row.drain_started_at === null || row.drain_deadline_at === null) return null
  return drainView({
    startedAt: row.drain_started_at,
    deadlineAt: row.drain_deadline_at,
    over: row.drain_over === true,
    lost: row.lost,
    sandboxes: row.sandboxes,
    mayFinish: row.may_finish,
    poolMembers: row.pool_held,
  })
}
