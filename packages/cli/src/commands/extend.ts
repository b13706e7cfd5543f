/** `extend`: moves the deadline of a sandbox. */

import { LIMITS } from '@sandglass/contract/limits'
import { Sandbox, type SandboxResource } from '@sandglass/sdk'
import { formatOf, operand, parseArguments, positiveInteger, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { relativeTime } from '../text.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...SERVER_OPTIONS, ttl: { type: 'string' } } as const

export const command: Command = {
  usage: 'extend ID [--ttl S]',
  help: `Moves the deadline of a sandbox to S seconds from now. Never shortens it.

  --ttl S   default ${LIMITS.ttlSecondsDefault}`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const id = operand(operands, 0, 'ID')
  const [, time] = operands
  if (time !== undefined) throw new UsageError(`the time is given as an option: sandglass extend ${id} --ttl ${/^\d+$/.test(time) ? time : 'SECONDS'}`)
  const ttlSeconds = positiveInteger('--ttl', values.ttl) ?? LIMITS.ttlSecondsDefault
  const sandbox = await (await Sandbox.get(id, { client: connect(values) })).extend(ttlSeconds)
  await printObject<SandboxResource>(io, formatOf(values), sandbox.resource, (item) => `${item.id} expires ${relativeTime(item.expires_at, io.now())}\n`)
  return 0
}
