/** Headers of file answers. A guest's headers are hostile: each one is checked for its form, and nothing else is passed on. */
import type { HostAnswer } from '../hosts/host-answer.ts'

const COUNT = /^[0-9]{1,15}$/
const ETAG = /^(?:W\/)?"[!#-~]{1,128}"$/
const CONTENT_RANGE = /^bytes (?:[0-9]{1,15}-[0-9]{1,15}|\*)\/(?:[0-9]{1,15}|\*)$/

function checked(answer: HostAnswer, name: string, form: RegExp): string | undefined {
  const value = answer.header(name)
  return value !== undefined && form.test(value) ? value : undefined
}

/** Bytes that the body must have; undefined when the guest does not know. */
export function contentLengthOf(answer: HostAnswer): number | undefined {
  const value = checked(answer, 'content-length', COUNT)
  return value === undefined ? undefined : Number(value)
}

/** Never a media type of the guest's choice: a file must not become a page of this origin. */
export function fileHeaders(answer: HostAnswer): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/octet-stream',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'accept-ranges': 'bytes',
  }
  const etag = checked(answer, 'etag', ETAG)
  const range = checked(answer, 'content-range', CONTENT_RANGE)
  const length = checked(answer, 'content-length', COUNT)
  const modified = checked(answer, 'last-modified-ms', COUNT)
  if (etag !== undefined) headers['etag'] = etag
  if (range !== undefined) headers['content-range'] = range
  if (length !== undefined) headers['content-length'] = length
  if (modified !== undefined) headers['last-modified'] = new Date(Number(modified)).toUTCString()
  return headers
}
