/** `host uncordon`: a host takes work again. */
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { statusOf } from '../host-description.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

export const command: Command = {
  usage: 'host uncordon HOST',
  help: 'The host takes work again. Calls off a drain that is under way; what that has ended stays ended.',
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  const host = operand(operands, 0, 'HOST')
  noMoreThan(operands, 1)
  await printObject(io, formatOf(values), await connect(values).hosts.uncordon(host), (item) => `${item.name} is ${statusOf(item)}\n`)
  return 0
}
