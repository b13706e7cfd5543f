/** `host token revoke`: a join token is over before it is used. */
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

export const command: Command = { usage: 'host token revoke TOKEN', help: 'Revokes a join token, by its id. Who has joined with it stays: host rm.', run }

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  const id = operand(operands, 0, 'TOKEN')
  noMoreThan(operands, 1)
  await connect(values).joinTokens.revoke(id)
  await printObject(io, formatOf(values), { id }, (item) => `${item.id}\n`)
  return 0
}
