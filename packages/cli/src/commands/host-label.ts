/** `host label`: sets labels of a host and takes them away. */
import { formatOf, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { describeHost } from '../host-description.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { UsageError } from '../usage-error.ts'

export const command: Command = {
  usage: 'host label HOST LABEL…',
  help: `Sets labels of a host: KEY=VALUE; KEY= takes one away. Others stay.

zone says what fails together, class what is alike; others are free.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  const host = operand(operands, 0, 'HOST')
  operand(operands, 1, 'LABEL')
  const labels = Object.fromEntries(operands.slice(1).map(labelOf))
  await printObject(io, formatOf(values), await connect(values).hosts.label(host, labels), (item) => describeHost(item, io.now()))
  return 0
}

function labelOf(text: string): [string, string | null] {
  const equals = text.indexOf('=')
  if (equals < 1) throw new UsageError(`a label is KEY=VALUE, or KEY= to take it away, not '${text}'`)
  const value = text.slice(equals + 1)
  return [text.slice(0, equals), value === '' ? null : value]
}
