/** `host inspect`: everything that an operator asks about a host. */
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { describeHost } from '../host-description.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

export const command: Command = {
  usage: 'host inspect HOST',
  help: 'Shows a host: its lease, labels, what is reserved of what it offers, what its probe proved, and, while it is drained, what is left and why.',
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  const host = operand(operands, 0, 'HOST')
  noMoreThan(operands, 1)
  await printObject(io, formatOf(values), await connect(values).hosts.get(host), (item) => describeHost(item, io.now()))
  return 0
}
