/**
 * The user's own file of profiles: how to reach installations elsewhere, by name.
 *
 * It stands in the user's configuration directory, not in SANDGLASS_HOME, which belongs to an installation. It holds keys, so it is readable
 * by its owner only, and one that others can read is refused; it is replaced as a whole, so that an interruption leaves the old one.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CodedError } from '@sandglass/contract/errors'
import { type Profiles, ProfilesSchema } from '@sandglass/contract/profile'
import { parserOf } from '@sandglass/contract/schema'
import { UsageError } from '../usage-error.ts'

const EMPTY: Profiles = { current: null, profiles: {} }
const OTHERS = 0o077
const parser = parserOf(ProfilesSchema)

type Environment = Readonly<Record<string, string | undefined>>

export function configPath(environment: Environment): string {
  const base = environment['XDG_CONFIG_HOME']
  return join(base === undefined || base === '' ? join(environment['HOME'] || homedir(), '.config') : base, 'sandglass', 'config.json')
}

/** @throws UsageError when there is one that cannot be used */
export function readConfig(environment: Environment): Profiles {
  const path = configPath(environment)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return EMPTY
    throw error
  }
  if ((statSync(path).mode & OTHERS) !== 0) throw new UsageError(`${path} holds keys and can be read by others; type: chmod 600 ${path}`)
  try {
    return parser.parse(JSON.parse(text))
  } catch (error) {
    if (!(error instanceof CodedError || error instanceof SyntaxError)) throw error
    throw new UsageError(`${path} cannot be read: ${error.message} Mend it, or remove it and use \`sandglass config set\` again`)
  }
}

export function writeConfig(environment: Environment, config: Profiles): void {
  const path = configPath(environment)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${process.pid}`
  try {
    writeFileSync(temporary, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}
