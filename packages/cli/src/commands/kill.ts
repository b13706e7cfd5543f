/** `kill`: a signal for a process and all its descendants. */

import { SIGNALS } from '@sandglass/contract/process'
import { type ProcessResource, Sandbox } from '@sandglass/sdk'
import { formatOf, noMoreThan, oneOfWords, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

const OPTIONS = { ...SERVER_OPTIONS, signal: { type: 'string', short: 's' }, 'leader-only': { type: 'boolean' } } as const

export const command: Command = {
  usage: 'kill ID PROCESS [--signal NAME]',
  help: `Sends a signal to a process and all its descendants, also those that detached themselves.

  --signal, -s NAME   ${SIGNALS.join(', ')}. Default TERM
  --leader-only       only to the process itself`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const id = operand(operands, 0, 'ID')
  const processId = operand(operands, 1, 'PROCESS')
  noMoreThan(operands, 2)
  const signal = oneOfWords('--signal', values.signal?.toUpperCase().replace(/^SIG/, ''), SIGNALS) ?? 'TERM'
  const sandbox = await Sandbox.get(id, { client: connect(values) })
  const process = await sandbox.process(processId)
  await process.signal(signal, values['leader-only'] === true ? { tree: false } : {})
  await printObject<ProcessResource>(io, formatOf(values), process.resource, () => '')
  return 0
}
