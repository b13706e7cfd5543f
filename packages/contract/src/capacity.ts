/** What the fleet offers and what waits for it, for operators and for whatever adds hosts. */
import Type, { type Static } from 'typebox'
import { amountsSchema } from './host.ts'
import { TimeSchema } from './sandbox.ts'
import { closed, nullable } from './schema.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })
const seconds = (description: string) => Type.Number({ minimum: 0, description })

/** Hosts of one region with the same label `class`. */
const ClassCapacitySchema = closed({
  region: Type.String(),
  class: nullable(Type.String({ description: 'Label `class` of its hosts; null: those without one.' })),
  hosts: closed({
    ready: count('They take work.'),
    cordoned: count('They take none, drained ones among them.'),
    lost: count('Not heard of for a lease.'),
  }),
  offered: amountsSchema({ description: 'By hosts that are ready.' }),
  reserved: amountsSchema({ description: 'Of it, by sandboxes and pool members.' }),
  free: amountsSchema({ description: 'The rest. A sandbox needs all of its own on one host: `largest_free` tells what that is.' }),
  largest_free: amountsSchema({ description: 'The most that is free of each resource on one host, each on the host where it is most.' }),
  pool: closed({ target: count('Idle members that the pools of these hosts are to have.'), held: count('Units that are reserved for them.') }),
})

/** What waits for a host, by what it has to run on. */
const DemandSchema = closed({
  region: Type.String(),
  isolation: Type.String({ description: 'The driver that a host must have proved.' }),
  waiting: count('Sandboxes that wait for a host.'),
  asked: amountsSchema({ description: 'What they ask for together.' }),
  largest: amountsSchema({ description: 'The most that one of them asks for, of each resource.' }),
  oldest_waiting_seconds: seconds('How long the one has waited that has waited longest.'),
  reasons: Type.Array(
    closed({
      code: Type.String({ description: 'Before the colon of `unschedulable_reason`; `not_looked_at` for those that no scheduler has looked at yet.' }),
      count: Type.Integer({ minimum: 1 }),
    }),
    { description: 'Most frequent first.' },
  ),
})

export const CapacitySchema = closed(
  {
    at: TimeSchema,
    classes: Type.Array(ClassCapacitySchema),
    demand: Type.Array(DemandSchema, { description: 'Empty when nothing waits.' }),
    waiting: count('Of all demand together.'),
    oldest_waiting_seconds: nullable(seconds('Null when nothing waits.')),
    start_lead: closed({
      samples: count('Sandboxes that were created in the last ten minutes and are or were ready, a thousand at most.'),
      median_seconds: nullable(seconds('From the placement to ready; null without samples.')),
    }),
  },
  { $id: 'Capacity' },
)
export type Capacity = Static<typeof CapacitySchema>
