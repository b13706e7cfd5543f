/** The API key of a request. Beyond this file only its SHA-256 is known. */
import { hash } from 'node:crypto'
import { API_KEY_PATTERN, CodedError } from '@sandglass/contract'

const BEARER = /^Bearer +(\S+)$/i

/** @returns hex @throws CodedError `unauthenticated` */
export function keySha256Of(authorization: string | undefined): string {
  const key = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]
  if (key === undefined || !API_KEY_PATTERN.test(key)) throw new CodedError('unauthenticated')
  return hash('sha256', key)
}
