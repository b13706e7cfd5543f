/** `config set`: makes or changes a profile. */
import { PROFILE_NAME_PATTERN } from '@sandglass/contract/profile'
import { parseUrls } from '@sandglass/contract/replicas'
import { COMMON_OPTIONS, formatOf, noMoreThan, operand, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import { keyIn } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { isSameServer } from '../profiles/choose.ts'
import { readConfig, writeConfig } from '../profiles/config-file.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...COMMON_OPTIONS, url: { type: 'string' }, 'api-key-file': { type: 'string' } } as const

export const command: Command = {
  usage: 'config set PROFILE [--url URL] [--api-key-file FILE]',
  help: `Makes a profile, or changes one. The first becomes the current one. The key is copied into the file of profiles, which only you may read.

  --url URL            base URL of the API; several replicas separated by commas
  --api-key-file FILE  a file that holds the key; keys are never arguments, where every user of the machine could read them`,
  run,
}

function checkedUrl(text: string): string {
  const urls = parseUrls(text)
  if (urls === undefined) throw new UsageError(`--url takes an http or https URL without a password, or several separated by commas, not '${text}'`)
  return urls.join(',')
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const name = operand(operands, 0, 'PROFILE')
  noMoreThan(operands, 1)
  if (!new RegExp(PROFILE_NAME_PATTERN).test(name)) throw new UsageError(`a profile's name has letters, digits, '.', '_' and '-', at most 63, not '${name}'`)
  const config = readConfig(io.environment)
  const old = config.profiles[name]
  const url = values.url === undefined ? old?.url : checkedUrl(values.url)
  // The old key is for the old server.
  const isElsewhere = old !== undefined && url !== undefined && !isSameServer(url, old.url)
  const apiKey = values['api-key-file'] === undefined ? (isElsewhere ? undefined : old?.api_key) : keyIn(values['api-key-file'])
  if (url === undefined) throw new UsageError('--url is missing')
  if (apiKey === undefined) throw new UsageError('--api-key-file is missing')
  writeConfig(io.environment, { current: config.current ?? name, profiles: { ...config.profiles, [name]: { url, api_key: apiKey } } })
  await printObject(io, formatOf(values), { name, url, current: (config.current ?? name) === name }, () => '')
  return 0
}
