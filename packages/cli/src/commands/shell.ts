/** `shell`: a terminal in a sandbox, to leave and come back to. */
import { Sandbox } from '@sandglass/sdk'
import { noMoreThan, offset, operand, parseArguments, parseEnvironment, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { Interrupt, Interrupted } from '../interrupt.ts'
import type { Io } from '../io.ts'
import { joinTerminal } from '../joined-terminal.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = {
  ...SERVER_OPTIONS,
  attach: { type: 'string' },
  since: { type: 'string' },
  user: { type: 'string' },
  cwd: { type: 'string' },
  env: { type: 'string', short: 'e', multiple: true },
} as const

export const command: Command = {
  usage: 'shell ID [--user USER] [--cwd DIR] [--env K=V] | shell ID --attach PROCESS [--since N]',
  help: `Opens a terminal with the user's login shell. It survives lost connections. Ctrl-P Ctrl-Q leaves it running; --attach comes back
to it, or to any process with a terminal, and shows again what it printed (the last 1 MiB).

  --attach PROCESS   come back to this one
  --since N          with --attach: offset of the first byte to show
  --user USER        default root
  --cwd DIR
  --env, -e K=V      repeatable`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const id = operand(operands, 0, 'ID')
  noMoreThan(operands, 1)
  const since = offset('--since', values.since)
  if (since !== undefined && values.attach === undefined) throw new UsageError('--since goes with --attach')
  const sandbox = await Sandbox.get(id, { client: connect(values) })
  using interrupt = new Interrupt(io)
  try {
    return await joinTerminal(io, sandbox, {
      id: values.attach,
      since,
      user: values.user,
      cwd: values.cwd,
      env: parseEnvironment(values.env, io.environment),
      interactive: true,
      stop: interrupt.signal,
    })
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode
    throw error
  }
}
