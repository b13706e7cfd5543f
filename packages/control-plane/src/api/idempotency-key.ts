/** The header `Idempotency-Key`. */
import { CodedError, LIMITS } from '@sandglass/contract'
import type { FastifyRequest } from 'fastify'

/** @throws CodedError `limit_exceeded` or `invalid_request` */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const header = request.headers['idempotency-key']
  if (header === undefined) return undefined
  const key = Array.isArray(header) ? header.join(',') : header
  if (key.length > LIMITS.idempotencyKeyCharacters) {
    throw new CodedError('limit_exceeded', `Idempotency-Key has ${key.length} characters; at most ${LIMITS.idempotencyKeyCharacters} are allowed.`, {
      limit: { name: 'idempotencyKeyCharacters', value: LIMITS.idempotencyKeyCharacters },
    })
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new CodedError('invalid_request', 'Idempotency-Key must be visible ASCII without spaces.', {
      errors: [{ path: '/headers/idempotency-key', message: 'must be visible ASCII without spaces' }],
    })
  }
  return key
}
