/** `key revoke`: ends an API key. */
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

export const command: Command = { usage: 'key revoke KEY', help: 'Revokes an API key. Its live sessions close within five seconds.', run }

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  const id = operand(operands, 0, 'KEY')
  noMoreThan(operands, 1)
  await connect(values).apiKeys.revoke(id)
  await printObject(io, formatOf(values), { id }, (item) => `${item.id}\n`)
  return 0
}
