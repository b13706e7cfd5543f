/** RFC 9457 problem details, the one shape of every error on every HTTP surface. */
import Type, { type Static } from 'typebox'
import { type CodedError, ERRORS, type ErrorCode, isErrorCode } from './errors.ts'
import { closed, parserOf } from './schema.ts'

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'
/** Where every server that answers with problems has its page of codes; each code is an anchor. */
export const ERRORS_PATH = '/docs/errors'

export const FieldErrorsSchema = Type.Optional(Type.Array(closed({ path: Type.String(), message: Type.String() })))
export const ReachedLimitSchema = Type.Optional(closed({ name: Type.String(), value: Type.Number() }))

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: 'Path, on the server that answered, of the line of documentation of this code: `/docs/errors#<code>`.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'A sentence: what was wrong and what to do next.' }),
    instance: Type.Optional(Type.String({ description: 'Path of the request.' })),
    code: Type.String({ description: 'A code of the error registry.' }),
    request_id: Type.Optional(Type.String()),
    retryable: Type.Boolean({ description: 'The same request may succeed later.' }),
    errors: FieldErrorsSchema,
    limit: ReachedLimitSchema,
    epoch: Type.Optional(Type.Integer({ minimum: 0, description: 'With `stale_epoch`: the epoch of the host that the database holds now.' })),
  },
  { $id: 'Problem' },
)
export type Problem = Static<typeof ProblemSchema>

const parser = parserOf(ProblemSchema)

export function problemOf(error: CodedError, where: { instance?: string; requestId?: string } = {}): Problem {
  const { status, title, retryable } = ERRORS[error.code]
  return {
    type: `${ERRORS_PATH}#${error.code}`,
    title,
    status,
    detail: error.message,
    ...(where.instance === undefined ? {} : { instance: where.instance }),
    code: error.code,
    ...(where.requestId === undefined ? {} : { request_id: where.requestId }),
    retryable,
    ...(error.context.errors === undefined ? {} : { errors: [...error.context.errors] }),
    ...(error.context.limit === undefined ? {} : { limit: { ...error.context.limit } }),
    ...(error.context.epoch === undefined ? {} : { epoch: error.context.epoch }),
  }
}

/** Reads a problem that another party sent; anything that is not one becomes undefined. */
export function parseProblem(value: unknown): (Problem & { code: ErrorCode }) | undefined {
  if (!parser.check(value)) return undefined
  const { code } = value
  return isErrorCode(code) ? { ...value, code } : undefined
}
