/** `watch`: changes of files in a sandbox as they happen. */
import { type FileEvent, Sandbox } from '@sandglass/sdk'
import { type Format, formatOf, noMoreThan, operand, parseArguments, positiveInteger, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { parseCopySide } from '../copy-path.ts'
import type { Io } from '../io.ts'
import { printLive } from '../live-lines.ts'
import { plain } from '../text.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...SERVER_OPTIONS, recursive: { type: 'boolean', short: 'r' }, user: { type: 'string' }, count: { type: 'string' } } as const

export const command: Command = {
  usage: 'watch PLACE [--recursive] [--user USER] [--count N]',
  help: `Prints changes of a file or directory in a sandbox, PLACE is ID:path, one a line, until Ctrl-C; with --json one object a line.
overflow says that some may have been missed: look yourself.

  --recursive, -r   also in directories below it
  --user USER       whose rights count inside the sandbox; default root
  --count N         end after so many changes`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const place = operand(operands, 0, 'PLACE')
  noMoreThan(operands, 1)
  const count = positiveInteger('--count', values.count)
  const side = parseCopySide(Buffer.from(place))
  if (side.type !== 'remote') throw new UsageError(`PLACE is ID:path, not '${place}'`)
  const sandbox = await Sandbox.get(side.sandbox, { client: connect(values) })
  const format = formatOf(values)
  const onReady = () => {
    if (format === 'human' && io.errorIsTerminal) io.stderr.write(`watching ${plain(place)}; Ctrl-C ends\n`).catch(() => undefined)
  }
  const options = { recursive: values.recursive, user: values.user, onReady }
  return printLive(io, { open: (signal) => sandbox.files.watch(side.path, { ...options, signal }), lineOf: (event) => lineOf(event, format), count })
}

function lineOf({ type, path, to, at }: FileEvent, format: Format): string {
  if (format !== 'human') return JSON.stringify({ type, path: path ?? null, to: to ?? null, at_ms: at?.getTime() ?? null })
  return `${type.padEnd(8)}  ${plain(path ?? '')}${to === undefined ? '' : ` -> ${plain(to)}`}`.trimEnd()
}
