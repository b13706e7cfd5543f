/**
 * Host agent → control plane, under `/internal/v1/hosts`. The host dials out.
 *
 * `register` gives an epoch (register.cas), `renew` advances the lease sequence, `watch` is a stream of orders, `reports` tells stable facts.
 * Orders are explicit: a host never infers an end from the absence of something in a list. A repeated, late or reordered order or
 * report changes nothing. Everything is sent again until it is answered by a state in which it is no longer due.
 *
 * Who does not hold the epoch that it speaks for is answered 409 `stale_epoch`, with the host's present one in the problem's member `epoch`: the host ends
 * everything and asks for the one after it, with `expected_epoch` as told.
 */
import Type, { type Static } from 'typebox'
import { AmountsSchema, DriverProbeSchema } from './host.ts'
import { ID_PATTERNS } from './ids.ts'
import { LIMITS } from './limits.ts'
import { PoolKeySchema, StartPathSchema } from './pool.ts'
import { closed, nullable, oneOf } from './schema.ts'
import { SignedSchema } from './ticket.ts'

const position = Type.Integer({ minimum: 0 })

/** POST /internal/v1/hosts/register */
export const RegisterHostSchema = closed({
  host_id: Type.String({ pattern: ID_PATTERNS.host, description: 'Made by the host on its first start, kept on its disk.' }),
  name: Type.String({ minLength: 1, maxLength: 63 }),
  boot_id: Type.String({ minLength: 8, maxLength: 64, description: 'Of the machine’s kernel; the holder of the lease.' }),
  expected_epoch: Type.Integer({ minimum: 0, description: 'The epoch on the host’s disk; 0 at first.' }),
  version: Type.String({ maxLength: 64 }),
  capacity: AmountsSchema,
  drivers: Type.Array(DriverProbeSchema, { maxItems: 8 }),
  templates: Type.Array(closed({ name: Type.String({ maxLength: 63 }), digest: Type.String({ maxLength: 80 }) }), { maxItems: 1_000 }),
  data_plane_url: Type.String({ maxLength: 255, description: 'Where gateways reach this host agent.' }),
})
export type RegisterHost = Static<typeof RegisterHostSchema>

export const RegisteredHostSchema = closed({
  epoch: position,
  seq: position,
  ticket_keys: Type.Array(closed({ id: Type.String({ maxLength: 64 }), public_key_pem: Type.String({ maxLength: 1_024 }) }), { minItems: 1, maxItems: 16 }),
  renew_period_ms: Type.Integer({ minimum: 100 }),
})
export type RegisteredHost = Static<typeof RegisteredHostSchema>

/** POST /internal/v1/hosts/{host_id}/renew */
export const RenewLeaseSchema = closed({ epoch: position, boot_id: Type.String({ minLength: 8, maxLength: 64 }) })
export const RenewedLeaseSchema = closed({ epoch: position, seq: position })

/** One line of GET /internal/v1/hosts/{host_id}/watch?epoch=N (NDJSON). `synced` follows the orders that were due when the watch opened. */
export const HostOrderSchema = Type.Union([
  closed({
    type: Type.Literal('start'),
    ticket: SignedSchema,
    spec: Type.String({ maxLength: LIMITS.hostWatchLineBytes }),
    /** W3C `traceparent` of the create that this start is for. A hint beside what is signed: whatever is here, or nothing, the order is the same one. */
    traceparent: Type.Optional(Type.Unknown()),
  }),
  closed({ type: Type.Literal('end'), order: SignedSchema }),
  /** Due until its version is acknowledged. `spec` is the text that the pool's key is the digest of. */
  closed({ type: Type.Literal('pool'), order: SignedSchema, spec: Type.String({ maxLength: 4_096 }) }),
  closed({ type: Type.Literal('synced') }),
  closed({ type: Type.Literal('heartbeat') }),
])
export type HostOrder = Static<typeof HostOrderSchema>

export const HostReportSchema = Type.Union([
  closed({
    type: Type.Literal('ready'),
    sandbox: Type.String({ pattern: ID_PATTERNS.sandbox }),
    generation: position,
    driver: Type.String({ maxLength: 32 }),
    path: StartPathSchema,
    evidence: Type.Record(Type.String({ pattern: '^[a-z_]{1,32}$' }), Type.String({ maxLength: 256 }), { maxProperties: 16, additionalProperties: false }),
    timings_ms: Type.Record(Type.String({ pattern: '^[a-z_]{1,32}$' }), Type.Number(), { maxProperties: 32, additionalProperties: false }),
  }),
  /** Stable: nothing of this sandbox up to `upto` runs, launches or flushes here, and never will (end.kill, end.durable). */
  closed({
    type: Type.Literal('ended'),
    sandbox: Type.String({ pattern: ID_PATTERNS.sandbox }),
    upto: position,
    reason: oneOf(['ordered', 'start_failed', 'runtime_exited', 'recovered']),
    detail: nullable(Type.String({ maxLength: 1_024 })),
    /** The newest version of the pool that the ended start had claimed from, as this host has stored it; null when it claimed from none (ended.pool). */
    pool_version: nullable(position),
  }),
  /** Stable: the host has stored this version of the pool and has no more members than its target (pool.ackn). */
  closed({ type: Type.Literal('pool'), key: PoolKeySchema, version: position }),
  /** A ticket that was not taken up: nothing was started, nothing recorded. */
  closed({
    type: Type.Literal('refused'),
    sandbox: Type.String({ pattern: ID_PATTERNS.sandbox }),
    generation: position,
    code: Type.String({ maxLength: 64 }),
    detail: Type.String({ maxLength: 1_024 }),
  }),
])
export type HostReport = Static<typeof HostReportSchema>

/** POST /internal/v1/hosts/{host_id}/reports */
export const HostReportsSchema = closed({ epoch: position, items: Type.Array(HostReportSchema, { maxItems: LIMITS.hostReportItems }) })
/** In the order of the items. `stale`: refused with `stale_generation` or `stale_epoch`, in the audit log once; never to be sent again. */
export const HostReportsAnswerSchema = closed({
  results: Type.Array(closed({ outcome: oneOf(['accepted', 'stale']), code: nullable(Type.String()) })),
})
export type HostReportsAnswer = Static<typeof HostReportsAnswerSchema>
