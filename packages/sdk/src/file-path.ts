/** Paths in a sandbox. They are bytes: text is sent as UTF-8, anything else is given as bytes. */
import { base64OfBytes, percentEncode } from './encoding.ts'

/** Absolute, inside the sandbox. Bytes where the name is not UTF-8. */
export type SandboxPath = string | Uint8Array

export type PathQuery = Readonly<Record<string, string | undefined>>

export function pathQuery(path: SandboxPath, parameters: PathQuery = {}): string {
  let query = `?path=${percentEncode(path)}`
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query += `&${name}=${percentEncode(value)}`
  return query
}

/** The fields `name` and `name_b64` of a request body. */
export function pathField(name: string, path: SandboxPath): Record<string, string> {
  return typeof path === 'string' ? { [name]: path } : { [`${name}_b64`]: base64OfBytes(path) }
}

export const flag = (value: boolean | undefined): string | undefined => (value === undefined ? undefined : value ? '1' : '0')
