/**
 * Headers that cross between gateway and guest: an allow-list each way, bounded. Tokens of gateways never reach a guest, and a guest cannot
 * speak in the name of the host.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2'
import { LIMITS, WRITER_HEADER } from '@sandglass/contract'

const TO_GUEST = ['accept', 'content-type', 'content-length', 'range', 'if-match', 'if-none-match', WRITER_HEADER] as const
const FROM_GUEST = ['content-type', 'content-length', 'content-range', 'accept-ranges', 'etag', 'last-modified-ms'] as const
const TRAILERS_FROM_GUEST = ['sandglass-entries', 'sandglass-skipped'] as const

const PRINTABLE = /^[\t\x20-\x7e]*$/

function pick(headers: IncomingHttpHeaders, names: readonly string[]): OutgoingHttpHeaders {
  const picked: OutgoingHttpHeaders = {}
  for (const name of names) {
    const value = headers[name]
    if (typeof value === 'string' && value.length <= LIMITS.dataPlaneHeaderValueBytes && PRINTABLE.test(value)) picked[name] = value
  }
  return picked
}

export const headersToGuest = (headers: IncomingHttpHeaders): OutgoingHttpHeaders => pick(headers, TO_GUEST)
export const headersFromGuest = (headers: IncomingHttpHeaders): OutgoingHttpHeaders => pick(headers, FROM_GUEST)
export const trailersFromGuest = (headers: IncomingHttpHeaders): OutgoingHttpHeaders => pick(headers, TRAILERS_FROM_GUEST)

/** A status that a guest may answer with, or undefined. */
export function statusFromGuest(status: unknown): number | undefined {
  return typeof status === 'number' && Number.isInteger(status) && status >= 200 && status <= 599 ? status : undefined
}

const LENGTH = /^[0-9]{1,15}$/

/** Bytes of the body that follows, where they are announced. */
export function lengthOf(headers: IncomingHttpHeaders): number | undefined {
  const value = headers['content-length']
  return value !== undefined && LENGTH.test(value) ? Number(value) : undefined
}
