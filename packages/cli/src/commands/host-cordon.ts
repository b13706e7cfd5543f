/** `host cordon`: nothing more is placed on a host. */
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { statusOf } from '../host-description.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

export const command: Command = {
  usage: 'host cordon HOST',
  help: 'From its answer on nothing is placed or claimed on the host, and its pools are emptied. What runs there goes on.',
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  const host = operand(operands, 0, 'HOST')
  noMoreThan(operands, 1)
  await printObject(io, formatOf(values), await connect(values).hosts.cordon(host), (item) => `${item.name} is ${statusOf(item)}\n`)
  return 0
}
