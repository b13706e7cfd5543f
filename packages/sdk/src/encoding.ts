/** Bytes to text and back. Nothing is trimmed: a byte order mark at the beginning is content. */
import { SandglassError } from './error.ts'

const encoder = new TextEncoder()

/** @throws SandglassError `invalid_request` for half of a surrogate pair, which would arrive as another character */
export function bytesOfText(text: string): Uint8Array {
  if (!text.isWellFormed()) throw new SandglassError('invalid_request', 'The text holds half of a surrogate pair, which no text does; pass bytes instead.')
  return encoder.encode(text)
}

export const textOfBytes = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)

export function bytesOfBase64(text: string): Uint8Array {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index)
  return bytes
}

const CHARACTERS_AT_ONCE = 0x8000

export function base64OfBytes(bytes: Uint8Array): string {
  let binary = ''
  for (let start = 0; start < bytes.byteLength; start += CHARACTERS_AT_ONCE) {
    binary += String.fromCharCode(...bytes.subarray(start, start + CHARACTERS_AT_ONCE))
  }
  return btoa(binary)
}

export function concatBytes(chunks: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0))
  let position = 0
  for (const chunk of chunks) {
    joined.set(chunk, position)
    position += chunk.byteLength
  }
  return joined
}

const UNRESERVED = /[A-Za-z0-9\-._~/]/

/** Percent-encodes raw bytes for a query, so that names which are not UTF-8 survive. `/` stays readable. */
export function percentEncode(value: string | Uint8Array): string {
  let text = ''
  for (const byte of typeof value === 'string' ? bytesOfText(value) : value) {
    const character = String.fromCharCode(byte)
    text += UNRESERVED.test(character) ? character : `%${byte.toString(16).padStart(2, '0').toUpperCase()}`
  }
  return text
}
