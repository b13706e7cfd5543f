/**
 * The query of a request, from its raw URL.
 *
 * Names of files are bytes, and frameworks decode what is UTF-8 and leave or spoil the rest. So the value of a path is checked here and
 * passed on as it came, percent-encoded, to be decoded once, inside the sandbox. All other values are text.
 */
import { CodedError, closed, LIMITS, type Parser, parserOf } from '@sandglass/contract'

const ESCAPE = /^(?:[^%]|%[0-9a-fA-F]{2})*$/
const SLASH = 0x2f

/** The part of a raw URL after the first `?`. */
export function rawQueryOf(url: string): string {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start + 1)
}

function wrongField(name: string, message: string): CodedError {
  return new CodedError('invalid_request', `/${name} ${message}.`, { errors: [{ path: `/${name}`, message }] })
}

/** Characters that may not stand in a URL as they are; Node.js hands over bytes above 0x7e as Latin-1. */
function encodeStrays(raw: string): string {
  return raw.replaceAll(/[^\x21-\x7e]|["<>\\^`{|}#]/g, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

function decodeText(name: string, raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch {
    throw wrongField(name, 'is not percent-encoded UTF-8')
  }
}

/** The bytes that a percent-encoded value stands for; only to look at them. */
export function bytesOfEscaped(raw: string): Buffer {
  const bytes = Buffer.alloc(raw.length)
  let length = 0
  for (let index = 0; index < raw.length; index += 1) {
    const isEscape = raw.charCodeAt(index) === 0x25
    bytes[length] = isEscape ? Number.parseInt(raw.slice(index + 1, index + 3), 16) : raw.charCodeAt(index)
    if (isEscape) index += 2
    length += 1
  }
  return bytes.subarray(0, length)
}

/** @throws CodedError `path_invalid` */
export function checkPathBytes(path: Uint8Array): void {
  const refuse = (detail: string, name?: 'pathBytes' | 'pathComponentBytes') => {
    throw new CodedError('path_invalid', detail, name === undefined ? {} : { limit: { name, value: LIMITS[name] } })
  }
  if (path.byteLength === 0) refuse('The path is empty; give an absolute path.')
  if (path[0] !== SLASH) refuse('The path is not absolute; begin it with `/`.')
  if (path.includes(0)) refuse('The path holds a NUL byte.')
  if (path.byteLength > LIMITS.pathBytes) refuse(`The path has ${path.byteLength} bytes; at most ${LIMITS.pathBytes} are possible.`, 'pathBytes')
  let start = 0
  for (let index = 0; index <= path.byteLength; index += 1) {
    if (index < path.byteLength && path[index] !== SLASH) continue
    const length = index - start
    if (length > LIMITS.pathComponentBytes) {
      refuse(`A name in the path has ${length} bytes; at most ${LIMITS.pathComponentBytes} are possible.`, 'pathComponentBytes')
    }
    start = index + 1
  }
}

/** Still percent-encoded. @throws CodedError `path_invalid` */
export function checkedRawPath(raw: string): string {
  if (!ESCAPE.test(raw)) throw new CodedError('path_invalid', 'The path has a broken percent escape.')
  const encoded = encodeStrays(raw)
  checkPathBytes(bytesOfEscaped(encoded))
  return encoded
}

export type Query = Readonly<Record<string, string | undefined>>

/**
 * Names are those of the schema, each at most once. The value of `path` stays percent-encoded and is checked; the rest is decoded.
 * @throws CodedError `invalid_request`, `path_invalid`
 */
export function parseQuery(url: string, parser: Parser<unknown>): Query {
  const values: Record<string, string> = {}
  for (const part of rawQueryOf(url).split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decodeText('query', equals < 0 ? part : part.slice(0, equals))
    const raw = equals < 0 ? '' : part.slice(equals + 1)
    if (Object.hasOwn(values, name)) throw wrongField(name, 'is given twice')
    const value = name === 'path' ? checkedRawPath(raw) : decodeText(name, raw)
    Object.defineProperty(values, name, { value, enumerable: true })
  }
  parser.parse(values)
  return values
}

/** `?a=b&c=d` for the guest, leaving out what is undefined. The value of `path` must be percent-encoded already. */
export function guestQuery(values: Readonly<Record<string, string | number | undefined>>): string {
  const parts: string[] = []
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) parts.push(`${name}=${name === 'path' ? value : encodeURIComponent(value)}`)
  }
  return parts.length === 0 ? '' : `?${parts.join('&')}`
}

/** For routes that take no query. */
export const emptyQuery = parserOf(closed({}))
