/** What `rm`, `stop` and `start` have in common: some sandboxes at once, a wait that can be bounded or left out, and going on when one fails. */
import { Sandbox } from '@sandglass/sdk'
import { formatOf, operand, parseArguments, positive, SERVER_OPTIONS } from './arguments.ts'
import { connect } from './connection.ts'
import { failureOf } from './failure.ts'
import type { Io } from './io.ts'
import { UsageError } from './usage-error.ts'

const OPTIONS = { ...SERVER_OPTIONS, 'no-wait': { type: 'boolean' }, wait: { type: 'string' } } as const

export type Waiting = { readonly wait: boolean; readonly timeoutMs: number | undefined }

/** What is printed of one that it went well with. */
export type Told = { readonly human: string; readonly json: unknown }

/** @returns the exit code: that of the worst */
export async function eachSandbox(io: Io, argv: readonly string[], work: (sandbox: Sandbox, waiting: Waiting) => Promise<Told>): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  operand(operands, 0, 'ID')
  const seconds = positive('--wait', values.wait)
  if (seconds !== undefined && values['no-wait'] === true) throw new UsageError('--wait goes without --no-wait')
  const client = connect(values)
  const human = formatOf(values) === 'human'
  const waiting = { wait: values['no-wait'] !== true, timeoutMs: seconds === undefined ? undefined : seconds * 1000 }
  const codes = await Promise.all(
    operands.map(async (id) => {
      try {
        const told = await work(await Sandbox.get(id, { client }), waiting)
        await io.stdout.write(`${human ? told.human : JSON.stringify(told.json)}\n`)
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
