/** `ls`: sandboxes in a table. */

import { SANDBOX_STATUSES } from '@sandglass/contract/sandbox'
import { Sandbox, type SandboxResource } from '@sandglass/sdk'
import { formatOf, noMoreThan, oneOfWords, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printList } from '../print.ts'
import type { Column } from '../table.ts'
import { relativeTime, thousands } from '../text.ts'

const OPTIONS = {
  ...SERVER_OPTIONS,
  all: { type: 'boolean', short: 'a' },
  status: { type: 'string' },
  template: { type: 'string' },
  metadata: { type: 'string' },
  quiet: { type: 'boolean', short: 'q' },
} as const

export const command: Command = {
  usage: 'ls [--all] [--status S] [--template T] [--metadata K=V] [--quiet]',
  help: `Lists sandboxes, newest first.

  --all, -a       also those that are deleted, for as long as they are kept
  --status S      ${SANDBOX_STATUSES.join(', ')}
  --template T    only those made from it
  --metadata K=V  only those with exactly this entry
  --quiet, -q     only ids`,
  run,
}

const PAGE = 200

function columns(nowMs: number): Column<SandboxResource>[] {
  return [
    { title: 'ID', value: (item) => item.id },
    { title: 'NAME', value: (item) => item.name ?? '' },
    { title: 'TEMPLATE', value: (item) => item.template.name },
    { title: 'STATUS', value: (item) => item.status },
    { title: 'ISOLATION', value: (item) => item.isolation?.driver ?? '-' },
    { title: 'CPU', value: (item) => String(item.resources.vcpu), align: 'right' },
    { title: 'MEMORY', value: (item) => `${thousands(item.resources.memory_mb)} MB`, align: 'right' },
    { title: 'EXPIRES', value: (item) => (item.ended_at === null ? relativeTime(item.expires_at, nowMs) : `ended ${relativeTime(item.ended_at, nowMs)}`) },
  ]
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  noMoreThan(operands, 0)
  const status = oneOfWords('--status', values.status, SANDBOX_STATUSES)
  const [key, ...rest] = values.metadata?.split('=') ?? []
  const metadata = key === undefined ? undefined : { key, value: rest.join('=') }
  const items: SandboxResource[] = []
  const list = Sandbox.list({ client: connect(values), status, template: values.template, includeEnded: values.all, metadata, pageSize: PAGE })
  for await (const sandbox of list) items.push(sandbox.resource)
  if (values.quiet === true) await io.stdout.write(items.map((item) => `${item.id}\n`).join(''))
  else await printList(io, formatOf(values), items, columns(io.now()))
  return 0
}
