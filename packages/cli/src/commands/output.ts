/** `output`: what a process printed, from any byte on. */
import { Sandbox } from '@sandglass/sdk'
import { noMoreThan, offset, oneOfWords, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { Interrupt, Interrupted } from '../interrupt.ts'
import type { Io } from '../io.ts'

const OPTIONS = {
  ...SERVER_OPTIONS,
  since: { type: 'string' },
  follow: { type: 'boolean', short: 'f' },
  stream: { type: 'string' },
  'allow-gap': { type: 'boolean' },
} as const

export const command: Command = {
  usage: 'output ID PROCESS [--since N] [--follow] [--stream stdout|stderr] [--allow-gap]',
  help: `Prints the exact bytes of one stream of a process. The last 1 MiB is kept; what is older is refused with output_gone, never left out
silently. Bytes are bytes: --json changes nothing here.

  --since N      offset of the first byte. Default 0
  --follow, -f   go on until the process ends
  --stream S     stdout (default) or stderr
  --allow-gap    begin with the oldest byte that is kept, and say on standard error what is missing`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const id = operand(operands, 0, 'ID')
  const processId = operand(operands, 1, 'PROCESS')
  noMoreThan(operands, 2)
  const since = offset('--since', values.since)
  const stream = oneOfWords('--stream', values.stream, ['stdout', 'stderr'])
  const sandbox = await Sandbox.get(id, { client: connect(values) })
  const process = await sandbox.process(processId)
  using interrupt = new Interrupt(io)
  const gaps: string[] = []
  const onGap =
    values['allow-gap'] === true
      ? (gap: { from: number; to: number }) => gaps.push(`sandglass: bytes ${gap.from} to ${gap.to} are no longer kept\n`)
      : undefined
  try {
    for await (const bytes of process.output({ stream, since, follow: values.follow, onGap, signal: interrupt.signal })) {
      for (const line of gaps.splice(0)) await io.stderr.write(line)
      await io.stdout.write(bytes)
    }
    return 0
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode
    throw error
  }
}
