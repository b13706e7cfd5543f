/** From the command line to an exit code. */

import { familyHelp } from './command-family.ts'
import { findCommand } from './commands.ts'
import { failureOf } from './failure.ts'
import { commandHelp, overview } from './help.ts'
import { type Io, processIo } from './io.ts'

const HELP = new Set(['--help', '-h', 'help'])

/** @returns the exit code; everything that goes wrong is one line on standard error */
export async function program(io: Io, argv: readonly string[]): Promise<number> {
  try {
    return await dispatch(io, argv)
  } catch (error) {
    const failure = failureOf(error)
    if (failure.line !== undefined) await io.stderr.write(`${failure.line}\n`).catch(() => undefined)
    return failure.exitCode
  }
}

async function dispatch(io: Io, argv: readonly string[]): Promise<number> {
  const first = argv[0]
  if (first === undefined || HELP.has(first)) {
    await io.stdout.write(overview())
    return 0
  }
  const found = findCommand(argv)
  if (found === undefined) {
    await io.stdout.write(familyHelp(argv, asksForHelp(argv)))
    return 0
  }
  const { command } = await found.entry.load()
  if (asksForHelp(found.rest)) {
    await io.stdout.write(commandHelp(command))
    return 0
  }
  return command.run(io, found.rest)
}

/** Only before `--`: what follows is somebody else's command. */
function asksForHelp(argv: readonly string[]): boolean {
  const separator = argv.indexOf('--')
  return (separator === -1 ? argv : argv.slice(0, separator)).some((argument) => argument === '--help' || argument === '-h')
}

/** Runs this process's command line and ends the process. */
export async function main(): Promise<void> {
  const io = processIo()
  const code = await program(io, process.argv.slice(2))
  // Everything that was printed has been taken; connections that are kept for reuse must not hold the process.
  process.exit(code)
}
