/** `logs`: what the roles wrote. */
import { existsSync } from 'node:fs'
import { homeFrom, LOG_NAMES, readLogs } from '@sandglass/supervisor'
import { COMMON_OPTIONS, formatOf, offset, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import { Interrupt } from '../interrupt.ts'
import type { Io } from '../io.ts'
import { plain } from '../text.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...COMMON_OPTIONS, follow: { type: 'boolean', short: 'f' }, lines: { type: 'string', short: 'n' } } as const
const DEFAULT_LINES = 50

export const command: Command = {
  usage: 'logs [ROLE…] [--follow] [--lines N]',
  help: `Prints the last lines of the roles' logs: ${LOG_NAMES.join(', ')}. They never hold secrets.

  --follow, -f    go on with what is appended, until Ctrl-C
  --lines, -n N   last lines of each role. Default ${DEFAULT_LINES}

With --json each line is {role, line}, one a line.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  for (const role of operands) if (!LOG_NAMES.includes(role)) throw new UsageError(`there is no role '${role}'; there are ${LOG_NAMES.join(', ')}`)
  const roles = operands.length === 0 ? LOG_NAMES : operands
  const human = formatOf(values) === 'human'
  const width = Math.max(...roles.map((role) => role.length))
  const home = homeFrom(process.env)
  // Without an installation there would be nothing to print, and with --follow for ever.
  if (!existsSync(home)) throw new UsageError(`there is no installation in ${home}; start one with \`sandglass up\`, or name its home in SANDGLASS_HOME`)
  using interrupt = new Interrupt(io)
  const query = {
    home,
    roles,
    lines: offset('--lines', values.lines) ?? DEFAULT_LINES,
    follow: values.follow === true,
    signal: interrupt.signal,
  }
  for await (const entry of readLogs(query)) {
    await io.stdout.write(human ? `${roles.length > 1 ? `${entry.role.padEnd(width)}  ` : ''}${plain(entry.line)}\n` : `${JSON.stringify(entry)}\n`)
  }
  return 0
}
