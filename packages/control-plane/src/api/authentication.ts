/** Bearer credentials: API keys of clients, and the tokens of the two internal roles. Only digests are compared and looked up. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { API_KEY_PATTERN, CodedError, sha256Hex } from '@sandglass/contract'
import type { FastifyRequest } from 'fastify'
import { authenticateKey, type Principal } from '../store/api-keys.ts'
import type { Queryable } from '../store/database.ts'

function bearer(request: FastifyRequest): string | undefined {
  return /^Bearer ([^\s]{1,512})$/i.exec(request.headers.authorization ?? '')?.[1]
}

/** @returns undefined for what cannot be a key */
export function keyDigestOf(request: FastifyRequest): string | undefined {
  const key = bearer(request)
  return key === undefined || !API_KEY_PATTERN.test(key) ? undefined : sha256Hex(key)
}

/** @throws CodedError `unauthenticated` */
export async function authenticate(db: Queryable, request: FastifyRequest, digest = keyDigestOf(request)): Promise<Principal> {
  if (digest === undefined) throw new CodedError('unauthenticated')
  const principal = await authenticateKey(db, digest)
  if (principal === undefined) throw new CodedError('unauthenticated')
  return principal
}

/**
 * `forbidden`, not `unauthenticated`: on the gateway's API that word is about the client's key.
 * @throws CodedError `forbidden`
 */
export function requireToken(request: FastifyRequest, sha256: string): void {
  const token = bearer(request)
  const digest = createHash('sha256')
    .update(token ?? '', 'utf8')
    .digest()
  if (token === undefined || !timingSafeEqual(digest, Buffer.from(sha256, 'hex'))) {
    throw new CodedError('forbidden', 'This path is for the roles of the installation and needs their token.')
  }
}
