/** `sim`: the real code in a simulated world, on a seed. */
import { join } from 'node:path'
import { parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { runProgram } from '../repository-program.ts'

const OPTIONS = { seeds: { type: 'string' }, seed: { type: 'string' }, workers: { type: 'string' }, history: { type: 'string' } } as const

export const command: Command = {
  usage: 'sim [--seeds N] [--seed S] [--workers N] [--history LINES]',
  help: `Runs whole installations in one process: the real control planes and host agents over a simulated network, disks, machines and clocks, and a real
Postgres engine. Each seed decides what goes wrong in it, and every invariant is looked at after every step.

  --seeds N           how many seeds; default 100, or 1 with --seed
  --seed S            the first of them; default 1. The same seed does the same again
  --workers N         threads; default 2
  --history LINES     how much of what led to a violation is printed; default 60

The exit code is 0 when nothing was violated, and 1 when something was: then what led to it is printed.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  // What is no option of it is refused as every command refuses it; values are the simulation's own business.
  parseArguments(argv, OPTIONS)
  return runProgram(io, join('packages', 'sim', 'src', 'main.ts'), argv)
}
