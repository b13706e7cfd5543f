/**
 * What a command takes, read from its own usage and help: the words that people see are the only description of a command there is, so a
 * completion cannot know less or more than `--help`. Pure.
 */
import type { Command } from '../command.ts'

export type Grammar = {
  /** `--name`, and what it takes. */
  readonly options: ReadonlyMap<string, string | undefined>
  /** Words of the usage in capitals, in their order; the last is repeated when `repeats`. */
  readonly operands: readonly string[]
  readonly repeats: boolean
}

const IN_USAGE = /\[(--[a-z][a-z-]*)(?: ([A-Za-z|=]+))?\]/g
const IN_HELP = /^ {2}(--[a-z][a-z-]*)(?:, -[a-z])?(?: ([A-Z][A-Z=]*))?(?: |$)/gm
const OPERAND = /^\[?([A-Z]+)(…)?\]?$/

const EVERYWHERE = ['--json', '--help']
const SERVER: readonly (readonly [string, string])[] = [
  ['--url', 'URL'],
  ['--api-key-file', 'FILE'],
  ['--profile', 'PROFILE'],
]

/** @param name of the command, as many words as it has */
export function grammarOf(name: string, command: Pick<Command, 'usage' | 'help'>, speaksToServer: boolean): Grammar {
  const options = new Map<string, string | undefined>()
  for (const [, option = '', value] of [...command.usage.matchAll(IN_USAGE), ...command.help.matchAll(IN_HELP)])
    options.set(option, value ?? options.get(option))
  for (const option of EVERYWHERE) options.set(option, undefined)
  if (speaksToServer) for (const [option, value] of SERVER) options.set(option, options.get(option) ?? value)
  const [first = ''] = command.usage.slice(name.length).split(' | ')
  const [own = ''] = first.replaceAll(IN_USAGE, '').split(' -- ')
  const operands = own.split(' ').flatMap((word) => OPERAND.exec(word)?.[1] ?? [])
  return { options, operands, repeats: own.includes('…') }
}
