/** `template ls`: what sandboxes can be made from. */
import type { Template } from '@sandglass/sdk'
import { formatOf, noMoreThan, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printList } from '../print.ts'
import type { Column } from '../table.ts'
import { bytesText, relativeTime } from '../text.ts'

export const command: Command = { usage: 'template ls', help: 'Lists templates. A version of a template is its digest and never changes.', run }

const columns = (nowMs: number): Column<Template>[] => [
  { title: 'NAME', value: (item) => item.name },
  { title: 'DIGEST', value: (item) => item.digest },
  { title: 'SIZE', value: (item) => bytesText(item.size_bytes), align: 'right' },
  { title: 'CREATED', value: (item) => relativeTime(item.created_at, nowMs) },
]

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  noMoreThan(operands, 0)
  await printList(io, formatOf(values), connect(values).templates.list(), columns(io.now()))
  return 0
}
