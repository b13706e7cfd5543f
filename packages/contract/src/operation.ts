/** A change under way. */
import Type, { type Static } from 'typebox'
import { ProblemSchema } from './problem.ts'
import { TimeSchema } from './sandbox.ts'
import { closed, nullable, oneOf } from './schema.ts'

export const OperationSchema = closed(
  {
    id: Type.String(),
    kind: oneOf(['sandbox.create', 'sandbox.start', 'sandbox.stop', 'sandbox.delete']),
    status: oneOf(['pending', 'succeeded', 'failed']),
    sandbox_id: Type.String(),
    problem: nullable(ProblemSchema),
    created_at: TimeSchema,
    ended_at: nullable(TimeSchema),
  },
  { $id: 'Operation' },
)
export type Operation = Static<typeof OperationSchema>
