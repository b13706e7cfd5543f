/** A machine that runs sandboxes, as operators see it. */
import Type, { type Static } from 'typebox'
import { PATTERNS } from './forms.ts'
import { LIMITS } from './limits.ts'
import { TimeSchema } from './sandbox.ts'
import { closed, nullable, oneOf } from './schema.ts'

export const amountsSchema = (options: { description?: string } = {}) =>
  closed({ vcpu: Type.Number({ minimum: 0 }), memory_mb: Type.Integer({ minimum: 0 }), disk_gb: Type.Integer({ minimum: 0 }) }, options)
export const AmountsSchema = amountsSchema()
export type Amounts = Static<typeof AmountsSchema>

/** A driver and what the host's probe proved of it. */
export const DriverProbeSchema = closed({
  name: oneOf(['gvisor', 'fake']),
  proved: Type.Boolean(),
  version: Type.String(),
  detail: Type.String({ description: 'What the probe saw, or why it failed and what to do.' }),
  probe_ms: Type.Number(),
})
export type DriverProbe = Static<typeof DriverProbeSchema>

export const HOST_LABEL_KEY_PATTERN = `^[a-z][a-z0-9._/-]{0,${LIMITS.hostLabelKeyCharacters - 1}}$`
const HostLabelKeySchema = Type.String({ pattern: HOST_LABEL_KEY_PATTERN })

/** What operators say of a machine. `zone` (what fails together) and `class` (what is alike) have a meaning of their own; others are free. */
export const HostLabelsSchema = Type.Record(HostLabelKeySchema, Type.String({ pattern: PATTERNS.hostLabelValue }), {
  additionalProperties: false,
  maxProperties: LIMITS.hostLabels,
  description: 'What operators say of the machine: `zone` (what fails together), `class` (what is alike), and free ones.',
})
export type HostLabels = Static<typeof HostLabelsSchema>

/** PATCH /v1/hosts/{id} */
export const UpdateHostSchema = closed(
  {
    labels: Type.Record(HostLabelKeySchema, nullable(Type.String({ pattern: PATTERNS.hostLabelValue })), {
      additionalProperties: false,
      minProperties: 1,
      maxProperties: LIMITS.hostLabels,
      description: 'Labels to set; null takes one away; those that are not named stay.',
    }),
  },
  { $id: 'UpdateHost' },
)
export type UpdateHost = Static<typeof UpdateHostSchema>

/** POST /v1/hosts/{id}/drain */
export const DrainHostSchema = closed(
  {
    deadline_seconds: Type.Optional(
      Type.Integer({
        minimum: LIMITS.drainSecondsMin,
        maximum: LIMITS.drainSecondsMax,
        default: LIMITS.drainSecondsDefault,
        description: 'From now on. A drain that is under way is never given more time by another one; it may be given less. Without it, it keeps its own.',
      }),
    ),
  },
  { $id: 'DrainHost' },
)
export type DrainHost = Static<typeof DrainHostSchema>

/** What a drain waits for. */
export const DRAIN_WAITS = ['may_finish', 'ending', 'host_lost', 'pool_members'] as const
export type DrainWait = (typeof DRAIN_WAITS)[number]

export const DrainSchema = closed({
  state: oneOf(['draining', 'drained', 'overdue'], { description: '`overdue`: the deadline has passed and something is left; `waits_for` says why.' }),
  started_at: TimeSchema,
  deadline_at: TimeSchema,
  ends_at: Type.String({ description: 'RFC 3339, UTC. What still runs then is ended; until then it may finish.' }),
  left: Type.Integer({ minimum: 0, description: 'Sandboxes whose end the host has not proved.' }),
  waits_for: Type.Array(
    closed({
      reason: oneOf(DRAIN_WAITS),
      count: Type.Integer({ minimum: 1 }),
      detail: Type.String({ description: 'What is waited for, and what can be done.' }),
    }),
  ),
})
export type Drain = Static<typeof DrainSchema>

export const HOST_STATUSES = ['ready', 'cordoned', 'draining', 'drained', 'lost'] as const
export const HostStatusSchema = oneOf(HOST_STATUSES, {
  description: '`lost`: no renewal for a lease, or fenced; it is a view and releases nothing. `drained`: its drain has left nothing on it.',
})
export type HostStatus = Static<typeof HostStatusSchema>

export const LEASE_STATES = ['held', 'late', 'fenced'] as const

const HostLeaseSchema = closed({
  state: oneOf(LEASE_STATES, {
    description:
      '`late`: no renewal for a lease. `fenced`: taken away from the host, and what it held with it, until it registers anew. When a late one is fenced is not a time of any wall clock: observers wait for lease and grace on their own.',
  }),
  lease_seconds: Type.Number({ description: 'Without a renewal for so long a host is lost, and no route leads there.' }),
  fence_grace_seconds: Type.Number({ description: 'So long behind that it is fenced, at the soonest.' }),
  fenced_at: nullable(Type.String({ description: 'RFC 3339, UTC. When it was fenced last; null: never.' })),
})

export const HostSchema = closed(
  {
    id: Type.String(),
    name: Type.String(),
    region: Type.String(),
    status: HostStatusSchema,
    cordoned: Type.Boolean({ description: 'Nothing is placed on it, claimed there, or kept in its pools.' }),
    drain: nullable(DrainSchema),
    labels: HostLabelsSchema,
    epoch: Type.Integer(),
    version: Type.String(),
    capacity: AmountsSchema,
    reserved: AmountsSchema,
    drivers: Type.Array(DriverProbeSchema),
    sandboxes: Type.Integer({ description: 'Live assignments: sandboxes that were placed here and whose end the host has not proved.' }),
    pool: closed({
      target: Type.Integer({ description: 'Idle members that its pools are to have.' }),
      held: Type.Integer({ description: 'Units that are reserved for them; more than the target until the host has ended what is too many.' }),
      memory_mb: Type.Integer({ description: 'What of `reserved` is held for them.' }),
      disk_gb: Type.Integer(),
    }),
    lease: HostLeaseSchema,
    renewed_at: nullable(TimeSchema),
    lease_age_seconds: nullable(Type.Number({ minimum: 0, description: 'Since the last renewal, by the database’s clock; null: it never renewed.' })),
    created_at: TimeSchema,
  },
  { $id: 'Host' },
)
export type Host = Static<typeof HostSchema>
