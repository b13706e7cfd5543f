/** `lab up`: a small fleet on this machine, to break. */
import { DEFAULT_SHAPE, LAB_DRIVERS, type LabDriver, type LabStatus, labOf, labStatus, labUp } from '@sandglass/supervisor/lab'
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments, positiveInteger } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { describeLab } from '../lab-description.ts'
import { printObject } from '../print.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = {
  ...COMMON_OPTIONS,
  hosts: { type: 'string' },
  'control-planes': { type: 'string' },
  gateways: { type: 'string' },
  driver: { type: 'string' },
} as const

export const command: Command = {
  usage: 'lab up [--hosts N] [--control-planes N] [--gateways N] [--driver fake|gvisor]',
  help: `Makes a fleet on this machine: a Postgres, control planes, gateways and hosts, each in a network namespace of its own. Real roles, real agents; nothing
is sent outside. Then cut, kill, pause, slow, skew and fill its nodes, and see what becomes of sandboxes. Needs root. Twice is fine. State lives in
SANDGLASS_LAB_HOME (/var/lib/sandglass-lab); give that as SANDGLASS_HOME to other commands to use the lab.

  --hosts N            default ${DEFAULT_SHAPE.hosts}
  --control-planes N   default ${DEFAULT_SHAPE.controlPlanes}
  --gateways N         default ${DEFAULT_SHAPE.gateways}
  --driver DRIVER      fake (default; sandboxes are plain processes of this machine and isolate nothing) or gvisor`,
  run,
}

function driverOf(text: string | undefined): LabDriver {
  const found = LAB_DRIVERS.find((driver) => driver === (text ?? DEFAULT_SHAPE.driver))
  if (found === undefined) throw new UsageError(`--driver takes ${LAB_DRIVERS.join(' or ')}, not '${text}'`)
  return found
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  noMoreThan(operands, 0)
  const format = formatOf(values)
  const shape = {
    hosts: positiveInteger('--hosts', values.hosts) ?? DEFAULT_SHAPE.hosts,
    controlPlanes: positiveInteger('--control-planes', values['control-planes']) ?? DEFAULT_SHAPE.controlPlanes,
    gateways: positiveInteger('--gateways', values.gateways) ?? DEFAULT_SHAPE.gateways,
    driver: driverOf(values.driver),
  }
  await labUp({ shape, env: process.env, onProgress: (text) => void (format === 'human' && io.stderr.write(`  ${text}\n`)) })
  await printObject<LabStatus>(io, format, await labStatus(labOf(process.env)), describeLab)
  return 0
}
