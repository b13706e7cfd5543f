/** Bearer credentials: API keys of clients. Only digests are looked up. */
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
