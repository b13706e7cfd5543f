/** `key ls`: API keys of the tenant, without their secrets. */
import type { ApiKey } from '@sandglass/sdk'
import { formatOf, noMoreThan, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printList } from '../print.ts'
import type { Column } from '../table.ts'
import { relativeTime } from '../text.ts'

export const command: Command = { usage: 'key ls', help: 'Lists API keys of the tenant. Secrets are not stored and cannot be shown.', run }

const columns = (nowMs: number): Column<ApiKey>[] => [
  { title: 'ID', value: (item) => item.id },
  { title: 'NAME', value: (item) => item.name },
  { title: 'ROLE', value: (item) => item.role },
  { title: 'CREATED', value: (item) => relativeTime(item.created_at, nowMs) },
  { title: 'USED', value: (item) => relativeTime(item.last_used_at, nowMs) },
  {
    title: 'EXPIRES',
    value: (item) =>
      item.revoked_at === null
        ? item.expires_at === null
          ? 'never'
          : relativeTime(item.expires_at, nowMs)
        : `revoked ${relativeTime(item.revoked_at, nowMs)}`,
  },
]

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  noMoreThan(operands, 0)
  await printList(io, formatOf(values), connect(values).apiKeys.list(), columns(io.now()))
  return 0
}
