/** `create`: a sandbox that stays. */
import { Sandbox, type SandboxResource } from '@sandglass/sdk'
import { formatOf, noMoreThan, parseArguments, positive } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { Interrupt, Interrupted } from '../interrupt.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { SANDBOX_OPTIONS, SANDBOX_OPTIONS_HELP, sandboxRequest } from '../sandbox-flags.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...SANDBOX_OPTIONS, 'no-wait': { type: 'boolean' }, wait: { type: 'string' } } as const

export const command: Command = {
  usage: 'create [options]',
  help: `Creates a sandbox, waits until it is ready and prints its id; with --json the whole object.

${SANDBOX_OPTIONS_HELP}
  --wait S            at most so many seconds; if it is not ready then, it is deleted again. Default 120
  --no-wait           do not wait until it is ready`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  noMoreThan(operands, 0)
  const seconds = positive('--wait', values.wait)
  if (seconds !== undefined && values['no-wait'] === true) throw new UsageError('--wait goes without --no-wait')
  const request = { ...sandboxRequest(io, values), client: connect(values) }
  using interrupt = new Interrupt(io)
  try {
    const sandbox =
      values['no-wait'] === true
        ? (await Sandbox.create({ ...request, wait: false, signal: interrupt.signal })).sandbox
        : await Sandbox.create({ ...request, signal: interrupt.signal, timeoutMs: seconds === undefined ? undefined : seconds * 1000 })
    await printObject<SandboxResource>(io, formatOf(values), sandbox.resource, ({ id }) => `${id}\n`)
    return 0
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode
    throw error
  }
}
