/** `config rm`: forgets a profile and its key. */
import { COMMON_OPTIONS, formatOf, noMoreThan, operand, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { profileNamed } from '../profiles/choose.ts'
import { readConfig, writeConfig } from '../profiles/config-file.ts'

export const command: Command = { usage: 'config rm PROFILE', help: 'Forgets a profile and its key here. The key itself stays valid: see key revoke.', run }

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, COMMON_OPTIONS)
  const name = operand(operands, 0, 'PROFILE')
  noMoreThan(operands, 1)
  const { current, profiles } = readConfig(io.environment)
  profileNamed({ current, profiles }, name)
  const { [name]: _, ...others } = profiles
  writeConfig(io.environment, { current: current === name ? null : current, profiles: others })
  await printObject(io, formatOf(values), { name }, () => '')
  return 0
}
