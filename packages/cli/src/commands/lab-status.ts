/** `lab status`: each node, and what was done to it. */
import { type LabStatus, labOf, labStatus } from '@sandglass/supervisor/lab'
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { describeLab } from '../lab-description.ts'
import { printObject } from '../print.ts'

export const command: Command = {
  usage: 'lab status',
  help: `Shows each node of the lab: its address, whether its process runs and serves, and whether it is partitioned, slow, out of time or out of disk. The status of
a host is what a control plane says of it.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, COMMON_OPTIONS)
  noMoreThan(operands, 0)
  await printObject<LabStatus>(io, formatOf(values), await labStatus(labOf(process.env)), describeLab)
  return 0
}
