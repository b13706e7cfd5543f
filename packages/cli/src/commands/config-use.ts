/** `config use`: which profile counts when nothing else is said. */
import { COMMON_OPTIONS, formatOf, noMoreThan, operand, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { profileNamed } from '../profiles/choose.ts'
import { readConfig, writeConfig } from '../profiles/config-file.ts'

const OPTIONS = { ...COMMON_OPTIONS, none: { type: 'boolean' } } as const

export const command: Command = {
  usage: 'config use PROFILE | config use --none',
  help: `Chooses the profile that commands use when neither options nor SANDGLASS_URL and SANDGLASS_API_KEY say otherwise.

  --none   none: the installation on this machine`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const name = values.none === true ? null : operand(operands, 0, 'PROFILE')
  noMoreThan(operands, name === null ? 0 : 1)
  const config = readConfig(io.environment)
  if (name !== null) profileNamed(config, name)
  writeConfig(io.environment, { ...config, current: name })
  await printObject(io, formatOf(values), { current: name }, () => '')
  return 0
}
