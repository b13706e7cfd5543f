/** `test`: the repository's whole test suite. */
import { join } from 'node:path'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { REPOSITORY, runProgram } from '../repository-program.ts'

export const command: Command = {
  usage: 'test [filter]',
  help: `Runs every test of this repository: unit, store, contract, guest agent, end to end on a real installation, failure. Nothing else needs to run.
With a filter only suites and files whose name contains it. The last line says how many passed, failed and were skipped.`,
  run: (io: Io, argv: readonly string[]) => runProgram(io, join('tests', 'run.ts'), argv, REPOSITORY),
}
