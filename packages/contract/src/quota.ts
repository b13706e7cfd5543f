/** What a tenant may hold, and holds. */
import Type, { type Static } from 'typebox'
import { closed } from './schema.ts'

const whole = (description: string) => Type.Integer({ minimum: 0, description })
const decimal = (description: string) => Type.Number({ minimum: 0, description })
const USED = 'What is held of it.'

const integers = (description: string) => closed({ limit: whole(description), used: whole(USED) })

const rate = (description: string) => closed({ requests: Type.Integer({ minimum: 1, description }), window_seconds: Type.Integer({ minimum: 1 }) })

export const QuotaSchema = closed(
  {
    running_sandboxes: integers('Wanted running, or with an end that its host has not proved.'),
    vcpu: closed({ limit: decimal('Of those together.'), used: decimal(USED) }),
    memory_mb: integers('Of those together.'),
    disk_gb: integers('Of those together.'),
    kept_sandboxes: integers('Stopped and failed ones that are not deleted.'),
    weight: Type.Integer({ minimum: 1, description: 'Whose turn it is when sandboxes wait for room: a weight of two gets twice the room of a weight of one.' }),
    rates: closed({ key: rate('Of one API key.'), tenant: rate('Of all keys of the tenant.') }, { description: 'Of API requests, at each control plane.' }),
  },
  { $id: 'Quota' },
)
export type Quota = Static<typeof QuotaSchema>
