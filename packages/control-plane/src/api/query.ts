/** Query strings are text; a schema says which of them are numbers and truth values. What does not convert stays text, and the parser refuses it. */
import { CodedError } from '@sandglass/contract'
import Type, { type TSchema } from 'typebox'

export function convertQuery(schema: TSchema, query: unknown): unknown {
  if (!Type.IsObject(schema) || typeof query !== 'object' || query === null) return query
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, convert(schema.properties[name], value)]))
}

function convert(schema: TSchema | undefined, value: unknown): unknown {
  if (schema === undefined || typeof value !== 'string') return value
  if (Type.IsInteger(schema) && /^-?\d{1,15}$/.test(value)) return Number(value)
  if (Type.IsBoolean(schema)) return value === 'true' || value === '1' ? true : value === 'false' || value === '0' ? false : value
  return value
}

/**
 * `key=value`; the value may hold further equal signs.
 * @throws CodedError `invalid_request`
 */
export function pairFilter(name: string, text: string | undefined): Record<string, string> | undefined {
  if (text === undefined) return undefined
  const at = text.indexOf('=')
  if (at <= 0) throw new CodedError('invalid_request', `/${name} must be key=value.`, { errors: [{ path: `/${name}`, message: 'must be key=value' }] })
  return { [text.slice(0, at)]: text.slice(at + 1) }
}
