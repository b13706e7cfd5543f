/** `bench`: the repository's benchmark. */
import { join } from 'node:path'
import { parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { runProgram } from '../repository-program.ts'

const OPTIONS = { only: { type: 'string' }, json: { type: 'string' }, samples: { type: 'string' } } as const

export const command: Command = {
  usage: 'bench [--only ROW,…] [--json FILE] [--samples N]',
  help: `Measures this machine: every row of the table of numbers beside its peer (the raw runtimes, OpenSSH), interleaved, on installations of its own.
Takes about a quarter of an hour, a row by itself four minutes at most, and wants a machine that does nothing else. It needs root.

  --only S1,E2        only these rows
  --json FILE         also write the table as JSON; raw samples go to FILE.samples.ndjson
  --samples N         at most N samples of everything: to see that it works, not to measure

The exit code is 0 when every row holds, 1 when one does not.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  // What is no option of it is refused as every command refuses it; values are the benchmark's own business.
  parseArguments(argv, OPTIONS)
  return runProgram(io, join('bench', 'main.ts'), argv)
}
