/**
 * JSON that a client sent, as a value whose every string is text.
 *
 * JSON can escape half of a surrogate pair. No UTF-8 holds it, so it would become U+FFFD somewhere behind the edge, or an error of a database: other bytes
 * than were sent, or nobody's fault. It is refused by the name of its field.
 */
import { CodedError } from './errors.ts'

/** Where there is none of these escapes, nothing has to be looked at. */
const HALF = /\\u[dD][89a-fA-F]/
const PATH_CHARACTERS = 200

/** @throws SyntaxError when it is not JSON @throws CodedError `invalid_request` naming the field */
export function parseJsonText(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (HALF.test(text)) refuseHalves(value)
  return value
}

/** Not recursive: nobody has bounded the depth yet. */
function refuseHalves(whole: unknown): void {
  const left: { readonly path: string; readonly value: unknown }[] = [{ path: '', value: whole }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { path, value } = next
    if (typeof value === 'string' && !value.isWellFormed()) throw half(path)
    if (typeof value !== 'object' || value === null) continue
    for (const [key, item] of Object.entries(value)) {
      if (!key.isWellFormed()) throw half(path)
      left.push({ path: `${path}/${key}`.slice(0, PATH_CHARACTERS), value: item })
    }
  }
}

function half(path: string): CodedError {
  const where = path === '' ? '/' : path
  const message = 'holds half of a surrogate pair, which no text does; send bytes as base64'
  return new CodedError('invalid_request', `${where} ${message}.`, { errors: [{ path: where, message }] })
}
