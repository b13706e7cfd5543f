/** `rm`: deletes sandboxes and what runs in them. */
import { Sandbox } from '@sandglass/sdk'
import { formatOf, operand, parseArguments, positive, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { failureOf } from '../failure.ts'
import type { Io } from '../io.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...SERVER_OPTIONS, 'no-wait': { type: 'boolean' }, wait: { type: 'string' } } as const

export const command: Command = {
  usage: 'rm ID… [--wait S] [--no-wait]',
  help: `Deletes sandboxes, and waits until nothing of them runs any more. Goes on with the others when one fails.

  --wait S    at most so many seconds; what takes longer is deleted all the same. Default 60
  --no-wait   do not wait`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  operand(operands, 0, 'ID')
  const seconds = positive('--wait', values.wait)
  if (seconds !== undefined && values['no-wait'] === true) throw new UsageError('--wait goes without --no-wait')
  const client = connect(values)
  const human = formatOf(values) === 'human'
  const codes = await Promise.all(
    operands.map(async (id) => {
      try {
        const sandbox = await Sandbox.get(id, { client })
        await sandbox.delete({ wait: values['no-wait'] !== true, timeoutMs: seconds === undefined ? undefined : seconds * 1000 })
        await io.stdout.write(human ? `${sandbox.id}\n` : `${JSON.stringify({ id: sandbox.id })}\n`)
        return 0
      } catch (error) {
        const failure = failureOf(error)
        if (failure.line !== undefined) await io.stderr.write(`${failure.line}\n`)
        return failure.exitCode
      }
    }),
  )
  return Math.max(...codes)
}
