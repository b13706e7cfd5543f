/** The client that a command speaks with. */
import { readFileSync } from 'node:fs'
import { Sandglass } from '@sandglass/sdk'
import { chooseConnection } from './profiles/choose.ts'
import { readConfig } from './profiles/config-file.ts'
import { UsageError } from './usage-error.ts'

export type ConnectionValues = { readonly url?: string | undefined; readonly 'api-key-file'?: string | undefined; readonly profile?: string | undefined }

/** @throws UsageError, SandglassError `unauthenticated` */
export function connect(values: ConnectionValues): Sandglass {
  const path = values['api-key-file']
  const given = { profile: values.profile, url: values.url, apiKey: path === undefined ? undefined : keyIn(path) }
  return new Sandglass(chooseConnection(given, process.env, () => readConfig(process.env)))
}

/** A key stands in a file, not in the arguments, where every user of the machine could read it. */
export function keyIn(path: string): string {
  const key = textOf(path).trim()
  if (!/^sgk_\S+$/.test(key)) throw new UsageError(`${path} holds no API key: one begins with sgk_`)
  return key
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    const why = code === 'ENOENT' ? 'is not there' : code === 'EACCES' ? 'may not be read by this user' : `cannot be read (${String(code)})`
    throw new UsageError(`the file of --api-key-file, ${path}, ${why}; an installation keeps the operator's key in admin.key of its home`)
  }
}
