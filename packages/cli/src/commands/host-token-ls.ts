/** `host token ls`: join tokens, without their secrets. */
import type { JoinToken } from '@sandglass/sdk'
import { formatOf, noMoreThan, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printList } from '../print.ts'
import type { Column } from '../table.ts'
import { relativeTime } from '../text.ts'

export const command: Command = {
  usage: 'host token ls',
  help: 'Lists join tokens, newest first, and who used them. Secrets are not stored and cannot be shown.',
  run,
}

const columns = (nowMs: number): Column<JoinToken>[] => [
  { title: 'ID', value: (item) => item.id },
  { title: 'ROLE', value: (item) => item.role },
  { title: 'STATUS', value: (item) => item.status },
  { title: 'CREATED', value: (item) => relativeTime(item.created_at, nowMs) },
  { title: 'EXPIRES', value: (item) => relativeTime(item.expires_at, nowMs) },
  { title: 'USED BY', value: (item) => item.used_by ?? '' },
]

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  noMoreThan(operands, 0)
  await printList(io, formatOf(values), connect(values).joinTokens.list(), columns(io.now()))
  return 0
}
