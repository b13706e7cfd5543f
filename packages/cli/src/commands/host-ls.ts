/** `host ls`: hosts of the installation. */
import { HOST_STATUSES } from '@sandglass/contract/host'
import { formatOf, noMoreThan, oneOfWords, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { HOST_COLUMNS } from '../host-description.ts'
import type { Io } from '../io.ts'
import { printList } from '../print.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...SERVER_OPTIONS, status: { type: 'string' }, label: { type: 'string' } } as const

export const command: Command = {
  usage: `host ls [--status ${HOST_STATUSES.join('|')}] [--label K=V]`,
  help: `Lists hosts, newest first. For operators.

  --status      only those in this status
  --label K=V   only those with this label`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  noMoreThan(operands, 0)
  const hosts = connect(values).hosts.list({ status: oneOfWords('--status', values.status, HOST_STATUSES), label: labelOf(values.label) })
  await printList(io, formatOf(values), hosts, HOST_COLUMNS)
  return 0
}

function labelOf(text: string | undefined): [string, string] | undefined {
  if (text === undefined) return undefined
  const equals = text.indexOf('=')
  if (equals < 1) throw new UsageError(`--label takes KEY=VALUE, not '${text}'`)
  return [text.slice(0, equals), text.slice(equals + 1)]
}
