/** `host rm`: removes a host on which nothing is left. */
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

export const command: Command = {
  usage: 'host rm HOST',
  help: `Removes a host. Refused while anything is assigned to it: drain it first.

Its certificate is refused from then on: an agent that still runs gets no work. With a new token (host join) it comes back, cordoned.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  const named = operand(operands, 0, 'HOST')
  noMoreThan(operands, 1)
  const { hosts } = connect(values)
  const { id } = await hosts.get(named)
  await hosts.remove(id)
  await printObject(io, formatOf(values), { id }, (item) => `${item.id}\n`)
  return 0
}
