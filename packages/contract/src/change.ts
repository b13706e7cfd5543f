/**
 * The tenant's change feed, GET /v1/events: what the `data` of each server-sent event holds.
 *
 * Positions are the tenant's own, count up by one from 1, and are the `id` of the events: whoever remembers one goes on behind it. Each event
 * carries a position, so that also a reader who saw no change knows where to go on.
 */
import Type, { type Static } from 'typebox'
import { TimeSchema } from './sandbox.ts'
import { closed, nullable, oneOf } from './schema.ts'

const position = Type.Integer({ minimum: 0, description: 'Go on behind it with `Last-Event-ID` or `since`.' })

/** `event: change` */
export const ChangeSchema = closed(
  {
    position,
    type: Type.String({ description: '`sandbox.` and a status, `updated` or `extended`.' }),
    sandbox_id: Type.String(),
    generation: Type.Integer({ minimum: 0 }),
    reason: nullable(Type.String()),
    at: TimeSchema,
  },
  { $id: 'Change' },
)
export type Change = Static<typeof ChangeSchema>

/** `event: gap`: what the reader has not seen is not known here any more (`expired`), or its position is none of this feed (`unknown`). List again. */
export const ChangeGapSchema = closed(
  {
    position,
    reason: oneOf(['expired', 'unknown']),
    from: nullable(Type.Integer({ minimum: 1, description: 'The first position that is gone; those up to `position` are.' })),
  },
  { $id: 'ChangeGap' },
)
export type ChangeGap = Static<typeof ChangeGapSchema>

/** `event: ready`, the first one, and `event: heartbeat`. */
export const ChangePositionSchema = closed({ position }, { $id: 'ChangePosition' })
export type ChangePosition = Static<typeof ChangePositionSchema>
