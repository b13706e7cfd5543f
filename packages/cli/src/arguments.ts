/**
 * Options and operands of a command. `node:util` parseArgs does the splitting: it knows short groups (`-it`) and repeated options, and a
 * library would add a dependency for help texts that a dozen lines print.
 */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { UsageError } from './usage-error.ts'

/** How lists and objects are printed. */
export type Format = 'human' | 'json' | 'lines'

/** Options that every command takes. */
export const COMMON_OPTIONS = {
  json: { type: 'boolean' },
  'json-lines': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies ParseArgsOptionsConfig

/** Options of commands that speak to a server. */
export const SERVER_OPTIONS = {
  ...COMMON_OPTIONS,
  url: { type: 'string' },
  'api-key-file': { type: 'string' },
  profile: { type: 'string' },
} as const satisfies ParseArgsOptionsConfig

/** What `parseArguments` gives for a set of options. */
export type Values<T extends ParseArgsOptionsConfig> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true; strict: true }>>['values']

export type ParsedArguments<T extends ParseArgsOptionsConfig> = {
  readonly values: Values<T>
  readonly operands: readonly string[]
  /** What follows `--`; undefined when there is no `--`. */
  readonly command: readonly string[] | undefined
}

/** @throws UsageError naming the option */
export function parseArguments<T extends ParseArgsOptionsConfig>(argv: readonly string[], options: T): ParsedArguments<T> {
  const separator = argv.indexOf('--')
  const own = (separator === -1 ? argv : argv.slice(0, separator)).map((argument) => (argument === '--json=lines' ? '--json-lines' : argument))
  try {
    const { values, positionals } = parseArgs({ args: own, options, allowPositionals: true, strict: true })
    return { values, operands: positionals, command: separator === -1 ? undefined : argv.slice(separator + 1) }
  } catch (error) {
    // parseArgs explains itself in several sentences, of which the first names the option.
    if (error instanceof TypeError) throw new UsageError(error.message.split('. ')[0] ?? error.message)
    throw error
  }
}

export function formatOf(values: { readonly json?: boolean | undefined; readonly 'json-lines'?: boolean | undefined }): Format {
  return values['json-lines'] === true ? 'lines' : values.json === true ? 'json' : 'human'
}

/** The operand at a position. @throws UsageError when it is missing */
export function operand(operands: readonly string[], index: number, name: string): string {
  const value = operands[index]
  if (value === undefined || value === '') throw new UsageError(`${name} is missing`)
  return value
}

/** @throws UsageError when there are more operands than `count` */
export function noMoreThan(operands: readonly string[], count: number): void {
  const extra = operands[count]
  if (extra !== undefined) throw new UsageError(`'${extra}' was not expected; a command to run stands after \`--\``)
}

/** What to run. @throws UsageError when nothing follows `--` */
export function commandOf(command: readonly string[] | undefined): readonly string[] {
  if (command === undefined || command.length === 0) throw new UsageError('the command to run is missing; put it after `--`')
  return command
}

function numberOf(name: string, text: string | undefined, valid: (value: number) => boolean, what: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || !valid(value)) throw new UsageError(`${name} takes ${what}, not '${text}'`)
  return value
}

export const positive = (name: string, text: string | undefined): number | undefined => numberOf(name, text, (value) => value > 0, 'a number above 0')

export const positiveInteger = (name: string, text: string | undefined): number | undefined =>
  numberOf(name, text, (value) => Number.isSafeInteger(value) && value > 0, 'a whole number above 0')

export const offset = (name: string, text: string | undefined): number | undefined =>
  numberOf(name, text, (value) => Number.isSafeInteger(value) && value >= 0, 'a whole number, 0 or more')

const SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3_600, d: 86_400 }

/** Seconds: `90`, `90s`, `30m`, `1h`, `7d`. */
export function duration(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, count, unit = ''] = /^([1-9][0-9]{0,8})([smhd]?)$/.exec(text) ?? []
  const seconds = SECONDS[unit]
  if (count === undefined || seconds === undefined) throw new UsageError(`${name} takes a time such as 90s, 30m or 1h, not '${text}'`)
  return Number(count) * seconds
}

export function oneOfWords<const W extends string>(name: string, text: string | undefined, words: readonly W[]): W | undefined {
  if (text === undefined) return undefined
  const word = words.find((candidate) => candidate === text)
  if (word === undefined) throw new UsageError(`${name} takes one of ${words.join(', ')}, not '${text}'`)
  return word
}

/** `K=V`, or `K` alone for the value that K has here, as other tools do. */
export function parseEnvironment(pairs: readonly string[] | undefined, own: Readonly<Record<string, string | undefined>>): Record<string, string> | undefined {
  if (pairs === undefined || pairs.length === 0) return undefined
  const environment: Record<string, string> = {}
  for (const pair of pairs) {
    const equals = pair.indexOf('=')
    const key = equals === -1 ? pair : pair.slice(0, equals)
    const value = equals === -1 ? own[key] : pair.slice(equals + 1)
    if (key === '') throw new UsageError(`--env takes NAME=VALUE, not '${pair}'`)
    if (value !== undefined) environment[key] = value
  }
  return environment
}
