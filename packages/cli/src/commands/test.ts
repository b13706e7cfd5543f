/** `test`: the repository's whole test suite. */
import { join } from 'node:path'
import { parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { REPOSITORY, runProgram } from '../repository-program.ts'
import { UsageError } from '../usage-error.ts'

export const command: Command = {
  usage: 'test [filter]',
  help: `Runs every test of this repository: unit, store, contract, guest agent, end to end on a real installation, failure. Nothing else needs to run.
With a filter only suites and files whose name contains it. The last line says how many passed, failed and were skipped.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  // A misspelt option would be a filter that nothing matches, found after everything that tests need has been installed.
  const { operands } = parseArguments(argv, {})
  if (operands.length > 1) throw new UsageError(`one filter at a time, not ${operands.join(' and ')}`)
  return runProgram(io, join('tests', 'run.ts'), operands, REPOSITORY)
}
