/** `down`: stops the installation on this machine. */
import { LIMITS } from '@sandglass/contract/limits'
import { type Stopped, stopInstallation } from '@sandglass/supervisor'
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

/** What the last renewal of the host's lease is good for. */
const RENEWAL_SECONDS = (LIMITS.leaseMs - LIMITS.leaseMarginMs) / 1_000

const OPTIONS = { ...COMMON_OPTIONS, sandboxes: { type: 'boolean' } } as const

export const command: Command = {
  usage: 'down [--sandboxes]',
  help: `Stops the roles. Sandboxes stay, with what runs in them: without the roles they stand still after ${RENEWAL_SECONDS} s, and go on after the next up. Twice is fine.

  --sandboxes   also end every sandbox, and leave nothing of them on this machine`,
  run,
}

function describe(stopped: Stopped, sandboxes: boolean): string {
  const state = stopped.wasRunning ? 'stopped' : 'was not running'
  const ended = !sandboxes
    ? `sandboxes stay, stand still in ${RENEWAL_SECONDS} s, and go on after the next up`
    : stopped.endedSandboxes === null
      ? 'nothing of its sandboxes is left'
      : `${stopped.endedSandboxes} sandboxes ended`
  return `${stopped.home}: ${state}; ${ended}\n`
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  noMoreThan(operands, 0)
  const sandboxes = values.sandboxes === true
  const stopped = await stopInstallation({ env: process.env, sandboxes })
  await printObject<Stopped>(io, formatOf(values), stopped, (item) => describe(item, sandboxes))
  return 0
}
