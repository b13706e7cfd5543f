/** `events`: what becomes of sandboxes, as it happens. */
import type { ChangeGap, SandboxChange } from '@sandglass/sdk'
import { type Format, formatOf, noMoreThan, offset, parseArguments, positiveInteger, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printLive } from '../live-lines.ts'
import { plain } from '../text.ts'

const OPTIONS = { ...SERVER_OPTIONS, since: { type: 'string' }, count: { type: 'string' } } as const

export const command: Command = {
  usage: 'events [--since N] [--count N]',
  help: `Prints changes of the tenant's sandboxes in their order, one a line, until Ctrl-C; with --json one object a line. Lost connections are taken
up again where they broke. A gap says that some are no longer kept: list the sandboxes again.

  --since N   go on behind this position, the first column; 0 is everything that is kept. Default: from now on
  --count N   end after so many`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  noMoreThan(operands, 0)
  const count = positiveInteger('--count', values.count)
  const since = offset('--since', values.since)
  const client = connect(values)
  const format = formatOf(values)
  return printLive(io, { open: (signal) => client.events({ since, signal }), lineOf: (event) => lineOf(event, format), count })
}

function lineOf(event: SandboxChange | ChangeGap, format: Format): string {
  if (format !== 'human') return JSON.stringify(wireOf(event))
  if (event.kind === 'gap') return `${event.position}  gap: ${event.reason}; list the sandboxes again`
  const { position, at, type, sandboxId, reason } = event
  return `${position}  ${at.toISOString()}  ${sandboxId}  ${type}${reason === undefined ? '' : `  ${plain(reason)}`}`
}

function wireOf(event: SandboxChange | ChangeGap): object {
  if (event.kind === 'gap') return { kind: 'gap', position: event.position, reason: event.reason, from: event.from ?? null }
  const { position, type, sandboxId, generation, reason, at } = event
  return { kind: 'change', position, type, sandbox_id: sandboxId, generation, reason: reason ?? null, at: at.toISOString() }
}
