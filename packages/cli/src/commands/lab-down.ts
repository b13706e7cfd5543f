/** `lab down`: nothing of the lab is left. */
import { labDown } from '@sandglass/supervisor/lab'
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

export const command: Command = {
  usage: 'lab down',
  help: `Ends the lab and removes everything of it: processes, sandboxes, namespaces, disks, database. Twice is fine, and so is a lab whose making was killed.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, COMMON_OPTIONS)
  noMoreThan(operands, 0)
  const removed = await labDown(process.env)
  await printObject(io, formatOf(values), { removed }, () => (removed ? 'the lab is gone\n' : 'there was no lab\n'))
  return 0
}
