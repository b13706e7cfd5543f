/** A machine that runs sandboxes, as operators see it. */
import Type, { type Static } from 'typebox'
import { TimeSchema } from './sandbox.ts'
import { closed, nullable, oneOf } from './schema.ts'

export const AmountsSchema = closed({
  vcpu: Type.Number({ minimum: 0 }),
  memory_mb: Type.Integer({ minimum: 0 }),
  disk_gb: Type.Integer({ minimum: 0 }),
})
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

export const HostSchema = closed(
  {
    id: Type.String(),
    name: Type.String(),
    status: oneOf(['ready', 'lost', 'cordoned'], {
      description: '`lost`: no renewal for a lease; it is a view and releases nothing.',
    }),
    epoch: Type.Integer(),
    version: Type.String(),
    capacity: AmountsSchema,
    reserved: AmountsSchema,
    drivers: Type.Array(DriverProbeSchema),
    sandboxes: Type.Integer(),
    pool: closed({
      target: Type.Integer({ description: 'Idle members that its pools are to have.' }),
      held: Type.Integer({ description: 'Units that are reserved for them; more than the target until the host has ended what is too many.' }),
      memory_mb: Type.Integer({ description: 'What of `reserved` is held for them.' }),
      disk_gb: Type.Integer(),
    }),
    renewed_at: nullable(TimeSchema),
    created_at: TimeSchema,
  },
  { $id: 'Host' },
)
export type Host = Static<typeof HostSchema>
