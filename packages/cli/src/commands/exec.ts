/** `exec`: a command in a sandbox that exists. */
import { type Argv, type ExecOptions, type ProcessResource, Sandbox, SandglassError, type SignalName, type Spawned } from '@sandglass/sdk'
import { commandOf, formatOf, noMoreThan, operand, parseArguments, parseEnvironment, positive, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { exitCodeOfSignal } from '../exit-code.ts'
import { Interrupt, Interrupted, type SignalWord } from '../interrupt.ts'
import type { Io } from '../io.ts'
import { type JoinedOptions, runJoined } from '../joined-command.ts'
import { type JoinedTerminalOptions, joinTerminal } from '../joined-terminal.ts'
import { runAsJson } from '../json-command.ts'
import { printObject } from '../print.ts'
import { exactCommand } from '../raw-arguments.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = {
  ...SERVER_OPTIONS,
  interactive: { type: 'boolean', short: 'i' },
  tty: { type: 'boolean', short: 't' },
  timeout: { type: 'string' },
  cwd: { type: 'string' },
  user: { type: 'string' },
  env: { type: 'string', short: 'e', multiple: true },
  background: { type: 'boolean' },
} as const

export const command: Command = {
  usage: 'exec ID [options] -- COMMAND [ARGUMENT…]',
  help: `Runs a command in a sandbox with its output here. The exit code is the command's. Arguments are passed as they are, no shell reads them:
for a pipeline write -- sh -c '…'.

  --interactive, -i   pass standard input on; without it the command reads end of file
  --tty, -t           give it a terminal; Ctrl-P Ctrl-Q leaves it running
  --timeout S         seconds until it is ended with all its descendants; exit code 124
  --cwd DIR           directory to run it in
  --user USER         user to run it as, default root
  --env, -e K=V       added to its environment; K alone takes the value it has here. Repeatable
  --background        only start it, and print its id: see ps, output, kill
  --json              print the result with its output as one object, instead of the streams

Ctrl-C reaches the command as SIGINT, a second one ends it with SIGKILL.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands, command: given } = parseArguments(argv, OPTIONS)
  const id = operand(operands, 0, 'ID')
  noMoreThan(operands, 1)
  const what = exactCommand(commandOf(given), io.lastArguments)
  const seconds = positive('--timeout', values.timeout)
  const options = {
    cwd: values.cwd,
    user: values.user,
    env: parseEnvironment(values.env, io.environment),
    timeoutMs: seconds === undefined ? undefined : seconds * 1000,
  }
  const interactive = values.interactive === true
  if (values.background === true && (interactive || values.tty === true)) throw new UsageError('--background goes with neither -i nor -t')
  if (values.tty === true && interactive && !io.inputIsTerminal) throw new UsageError('-t needs a terminal here; leave it out for a pipe')
  if (values.tty === true && formatOf(values) !== 'human') throw new UsageError('--json goes without -t')
  const sandbox = await Sandbox.get(id, { client: connect(values) })
  if (values.background === true) {
    const { resource } = await sandbox.start(what, options)
    await printObject<ProcessResource>(io, formatOf(values), resource, (item) => `${item.id}\n`)
    return 0
  }
  if (formatOf(values) !== 'human') return asJson(io, sandbox, what, { ...options, stdin: interactive ? io.stdin : undefined })
  if (values.tty === true) return inTerminal(io, sandbox, { ...options, program: { argv: what }, interactive })
  return withSignals(io, sandbox, what, { ...options, interactive })
}

/** Ctrl-C ends the command: there is no stream to go on with. */
async function asJson(io: Io, sandbox: Sandbox, what: Argv, options: ExecOptions): Promise<number> {
  using interrupt = new Interrupt(io)
  try {
    return await runAsJson(io, sandbox, what, { ...options, signal: interrupt.signal })
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode
    throw error
  }
}

async function inTerminal(io: Io, sandbox: Sandbox, options: JoinedTerminalOptions): Promise<number> {
  using interrupt = new Interrupt(io)
  try {
    return await joinTerminal(io, sandbox, { ...options, stop: interrupt.signal })
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode
    throw error
  }
}

/** Passes signals on instead of dying from them, so that the command can end in its own way. */
async function withSignals(io: Io, sandbox: Sandbox, what: Argv, options: JoinedOptions): Promise<number> {
  const started = Promise.withResolvers<Spawned>()
  started.promise.catch(() => undefined)
  let count = 0
  const stop = io.onSignal((signal) => {
    count += 1
    if (count > 2) process.exit(exitCodeOfSignal(signal))
    void started.promise.then((spawned) => pass(spawned, signal, count))
  })
  try {
    return await runJoined(io, sandbox, what, { ...options, onStarted: (spawned) => started.resolve(spawned) })
  } finally {
    stop()
  }
}

async function pass(spawned: Spawned, signal: SignalWord, count: number): Promise<void> {
  const name: SignalName = count === 1 ? signal : 'KILL'
  try {
    await spawned.signal(name)
  } catch (error) {
    // It has ended, or contact is lost; the session tells which.
    if (!(error instanceof SandglassError)) throw error
  }
}
