/** Every error becomes RFC 9457 problem details with a code of the registry; what is not expected becomes `internal` and is logged with its cause. */
import { CodedError, LIMITS, PROBLEM_MEDIA_TYPE, type Problem, problemOf } from '@sandglass/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'

const RETRY_AFTER_SECONDS = 1

export function codedErrorOf(error: unknown): CodedError {
  if (error instanceof CodedError) return error
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new CodedError('body_too_large', `The body is larger than ${LIMITS.apiBodyBytes} bytes.`, {
      limit: { name: 'apiBodyBytes', value: LIMITS.apiBodyBytes },
    })
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new CodedError('unsupported_media_type', 'The body must be application/json.')
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH' || code === 'FST_ERR_BAD_URL') return new CodedError('invalid_request', 'The request is malformed.')
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined
  if (status === 400) return new CodedError('invalid_request', 'The request is malformed.', { cause: error })
  return new CodedError('internal', undefined, { cause: error })
}

export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const coded = codedErrorOf(error)
  if (coded.code === 'internal') request.log.error({ err: coded.context.cause ?? coded }, 'request failed')
  else if (coded.code === 'unavailable') request.log.warn({ err: coded.context.cause }, 'database away')
  const retryAfter = coded.context.retryAfterSeconds ?? (coded.status === 429 || coded.status === 503 ? RETRY_AFTER_SECONDS : undefined)
  if (retryAfter !== undefined) void reply.header('retry-after', String(retryAfter))
  if (coded.code === 'unauthenticated') void reply.header('www-authenticate', 'Bearer')
  sendProblem(problemOf(coded), request, reply)
}

/** Also for problems that were recorded earlier, with an operation. */
export function sendProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply): void {
  const path = request.url.split('?')[0] ?? request.url
  void reply
    .code(problem.status)
    .header('content-type', PROBLEM_MEDIA_TYPE)
    .send(JSON.stringify({ ...problem, instance: path, request_id: request.id }))
}
