/**
 * What a host keeps on disk for one sandbox, and the only functions that change it.
 *
 * `high` is the high-water mark of generations: no start at or below it is ever taken up again (ticket.new, ticket.old). High-water mark and
 * intent are one record, because two could disagree after a crash. A record that has no runtime left stays as a tombstone until no ticket
 * for its generations can still be valid (tomb.term).
 *
 *   (none) ── ticket ──▶ launching ── guest has its identity ──▶ running
 *                            │                                      │
 *                            └────────── end, failure, exit ────────┤
 *   (none) ── end ──▶ gone ◀── nothing of it is left ── ending ◀────┘
 *                      │
 *                      └── newer ticket ──▶ launching
 */
import type { EndOrder, HostReport, PoolPosition, RuntimeSpec, StartPath, StartTicket } from '@sandglass/contract'
import { type RuntimeName, runtimeName } from './runtime-name.ts'

export type EndReason = Extract<HostReport, { type: 'ended' }>['reason']
export type Ended = { readonly reason: EndReason; readonly detail: string | null }

/** Of the runtime that a record is about. Never holds the environment of the sandbox: its values may be secrets. */
export type RuntimeIntent = {
  /** The sandbox's own, or that of the pool member that became it. */
  readonly name: RuntimeName
  readonly path: StartPath
  readonly generation: number
  readonly epoch: number
  readonly driver: RuntimeSpec['driver']
  readonly template_digest: string
  readonly vcpu: number
  readonly memory_mb: number
  readonly disk_gb: number
  readonly pids_max: number
  /** Of the guest agent that was given the identity; a returning one must show the same. Null until then. */
  readonly guest_boot_id: string | null
  readonly evidence: Readonly<Record<string, string>>
  readonly timings_ms: Readonly<Record<string, number>>
}

/** The pool that a start has claimed from, as the claim left it. */
export type ClaimedPool = { readonly epoch: number; readonly position: PoolPosition }

/** What is known of a member before a sandbox gets it. */
export type MemberIntent = Pick<RuntimeIntent, 'name' | 'guest_boot_id' | 'evidence'>

export type SandboxPhase =
  /** The intent is recorded; things of it may exist. It has never been reported. */
  | 'launching'
  /** The guest has its identity; `ready` is due until it is answered. */
  | 'running'
  /** It is being taken down; things of it may exist. Nothing may be reported. */
  | 'ending'
  /** Nothing of any generation up to `high` exists here, and none ever will; `ended` is due until it is answered. */
  | 'gone'

export type SandboxRecord = {
  readonly format: 1
  readonly sandbox: string
  readonly high: number
  /** The lease term after which no ticket at or below `high` can have been minted; null while that is not known. */
  readonly term: number | null
  readonly phase: SandboxPhase
  readonly runtime: RuntimeIntent | null
  /** Stays with the tombstone: the end of a start that claimed from a pool is told with that pool's version (ended.pool). */
  readonly pool: ClaimedPool | null
  readonly ended: Ended | null
  /** The report of the end was answered. */
  readonly settled: boolean
}

/**
 * guard: member.record. Intent, high-water mark, position of the pool and the picked member are one record, durable before the member learns
 * whose it is.
 * @param member that the sandbox gets; null for a cold start
 */
export function recordStart(ticket: StartTicket, spec: RuntimeSpec, member: MemberIntent | null): SandboxRecord & { readonly runtime: RuntimeIntent } {
  return {
    format: 1,
    sandbox: ticket.sandbox,
    high: ticket.generation,
    term: null,
    phase: 'launching',
    runtime: {
      name: member?.name ?? runtimeName(ticket),
      path: member === null ? 'cold' : 'claimed',
      generation: ticket.generation,
      epoch: ticket.epoch,
      driver: spec.driver,
      template_digest: spec.template.digest,
      vcpu: spec.resources.vcpu,
      memory_mb: spec.resources.memory_mb,
      disk_gb: spec.resources.disk_gb,
      pids_max: spec.pids_max,
      guest_boot_id: member?.guest_boot_id ?? null,
      evidence: member?.evidence ?? {},
      timings_ms: {},
    },
    pool: ticket.pool === null ? null : { epoch: ticket.epoch, position: ticket.pool },
    ended: null,
    settled: false,
  }
}

export function recordRunning(record: SandboxRecord, seen: Pick<RuntimeIntent, 'guest_boot_id' | 'evidence' | 'timings_ms'>): SandboxRecord {
  if (record.phase !== 'launching' || record.runtime === null) throw new Error(`a record in phase ${record.phase} cannot begin to run`)
  return { ...record, phase: 'running', runtime: { ...record.runtime, ...seen } }
}

/** The first reason stands: what is already ending does not change why. */
export function recordEnding(record: SandboxRecord, why: Ended): SandboxRecord {
  if (record.phase === 'gone') return record
  return { ...record, phase: 'ending', ended: record.ended ?? why }
}

/**
 * The record that an end order makes: the high-water mark rises in the same write that turns the runtime towards its end.
 * @param record undefined: nothing of the sandbox was ever here; the order leaves a tombstone against a start that is still on its way
 */
export function recordEndOrder(record: SandboxRecord | undefined, order: EndOrder): SandboxRecord {
  const why: Ended = { reason: 'ordered', detail: null }
  if (record === undefined) {
    return { format: 1, sandbox: order.sandbox, high: order.upto, term: order.term, phase: 'gone', runtime: null, pool: order.pool, ended: why, settled: false }
  }
  const term = Math.max(record.term ?? 0, order.term)
  const pool = newerPool(record.pool, order.pool)
  if (record.phase === 'gone') return { ...record, high: order.upto, term, pool, settled: false }
  return { ...recordEnding(record, why), high: order.upto, term, pool }
}

/** Two that are told of one sandbox: the later claim, or the later state of the same pool. */
export function newerPool(left: ClaimedPool | null, right: ClaimedPool | null): ClaimedPool | null {
  if (left === null || right === null) return left ?? right
  if (left.epoch !== right.epoch) return left.epoch > right.epoch ? left : right
  return left.position.version > right.position.version ? left : right
}

export function recordGone(record: SandboxRecord): SandboxRecord {
  return { ...record, phase: 'gone', runtime: null, ended: record.ended ?? { reason: 'recovered', detail: null }, settled: false }
}

export function recordSettled(record: SandboxRecord): SandboxRecord {
  return record.phase === 'gone' ? { ...record, settled: true } : record
}

/**
 * Gives a tombstone that no order made its term: the sequence of a renewal that was sent after the report of its end had been answered.
 * Every ticket of its generations was read from SQL before that answer, so none carries a later term (tomb.term).
 */
export function recordTerm(record: SandboxRecord, seq: number): SandboxRecord {
  return record.phase === 'gone' && record.settled && record.term === null ? { ...record, term: seq } : record
}
