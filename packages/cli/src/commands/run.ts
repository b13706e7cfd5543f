/** `run`: a sandbox for one command. Whatever happens, it is gone afterwards. */
import { type Argv, Sandbox } from '@sandglass/sdk'
import { commandOf, formatOf, noMoreThan, parseArguments, positive } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { Interrupt, Interrupted } from '../interrupt.ts'
import type { Io } from '../io.ts'
import { runJoined } from '../joined-command.ts'
import { joinTerminal } from '../joined-terminal.ts'
import { runAsJson } from '../json-command.ts'
import { exactCommand } from '../raw-arguments.ts'
import { SANDBOX_OPTIONS, SANDBOX_OPTIONS_HELP, sandboxRequest } from '../sandbox-flags.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = {
  ...SANDBOX_OPTIONS,
  interactive: { type: 'boolean', short: 'i' },
  tty: { type: 'boolean', short: 't' },
  cwd: { type: 'string' },
  user: { type: 'string' },
  timeout: { type: 'string' },
} as const

const DELETE_TIMEOUT_MS = 30_000

export const command: Command = {
  usage: 'run [options] -- COMMAND [ARGUMENT…]',
  help: `Creates a sandbox, runs the command in it with its output here, and deletes the sandbox, also at Ctrl-C. The exit code is the command's.

${SANDBOX_OPTIONS_HELP}
  --interactive, -i   pass standard input on; without it the command reads end of file
  --tty, -t           give it a terminal (-it for a shell)
  --timeout S         seconds until the command is ended; exit code 124
  --cwd DIR           directory to run it in
  --user USER         user to run it as, default root
  --json              print the result with its output as one object, instead of the streams`,
  run,
}

type Values = ReturnType<typeof parseArguments<typeof OPTIONS>>['values']

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands, command: given } = parseArguments(argv, OPTIONS)
  const what = exactCommand(commandOf(given), io.lastArguments)
  noMoreThan(operands, 0)
  if (values.tty === true && values.interactive === true && !io.inputIsTerminal) throw new UsageError('-t needs a terminal here; leave it out for a pipe')
  if (values.tty === true && formatOf(values) !== 'human') throw new UsageError('--json goes without -t')
  const request = sandboxRequest(io, values)
  const client = connect(values)
  using interrupt = new Interrupt(io)
  try {
    const sandbox = await Sandbox.create({ ...request, client, signal: interrupt.signal })
    try {
      return await inside(io, sandbox, what, values, interrupt.signal)
    } finally {
      await sandbox.delete({ timeoutMs: DELETE_TIMEOUT_MS })
    }
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode
    throw error
  }
}

function inside(io: Io, sandbox: Sandbox, what: Argv, values: Values, signal: AbortSignal): Promise<number> {
  const seconds = positive('--timeout', values.timeout)
  const options = {
    cwd: values.cwd,
    user: values.user,
    timeoutMs: seconds === undefined ? undefined : seconds * 1000,
    interactive: values.interactive === true,
  }
  if (formatOf(values) !== 'human') {
    const { interactive, ...command } = options
    return runAsJson(io, sandbox, what, { ...command, signal, stdin: interactive ? io.stdin : undefined })
  }
  if (values.tty === true) return joinTerminal(io, sandbox, { ...options, program: { argv: what }, stop: signal })
  return runJoined(io, sandbox, what, { ...options, signal })
}
