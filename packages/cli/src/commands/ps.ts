/** `ps`: processes of a sandbox. */
import { type ProcessResource, Sandbox } from '@sandglass/sdk'
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { exitCodeOfExit } from '../exit-code.ts'
import type { Io } from '../io.ts'
import { printList } from '../print.ts'
import type { Column } from '../table.ts'
import { bytesText, durationText, shellQuoted, shortened } from '../text.ts'

const OPTIONS = { ...SERVER_OPTIONS, running: { type: 'boolean' } } as const
const COMMAND_CHARACTERS = 60

export const command: Command = {
  usage: 'ps ID [--running]',
  help: `Lists processes that were started through Sandglass: running ones, and ended ones that are still remembered.

  --running   only those that run`,
  run,
}

function columns(nowMs: number): Column<ProcessResource>[] {
  return [
    { title: 'PROCESS', value: (item) => item.id },
    { title: 'STATE', value: (item) => (item.state === 'running' ? 'running' : item.timed_out ? 'timed out' : 'exited') },
    {
      title: 'CODE',
      value: (item) => (item.state === 'running' ? '-' : item.signal === null ? String(exitCodeOfExit(exitOf(item))) : `SIG${item.signal}`),
      align: 'right',
    },
    { title: 'TIME', value: (item) => durationText(item.duration_ms ?? nowMs - item.started_at_ms), align: 'right' },
    { title: 'CPU', value: (item) => `${(item.cpu_ms / 1000).toFixed(1)} s`, align: 'right' },
    { title: 'MEMORY', value: (item) => (item.state === 'running' ? bytesText(item.memory_bytes) : '-'), align: 'right' },
    { title: 'TTY', value: (item) => (item.tty ? `${item.cols}×${item.rows}` : '-') },
    { title: 'USER', value: (item) => item.user },
    { title: 'COMMAND', value: (item) => shortened(shellQuoted(item.argv), COMMAND_CHARACTERS) },
  ]
}

function exitOf(item: ProcessResource): { exitCode: number | null; signal: string | null; timedOut: boolean } {
  return { exitCode: item.exit_code, signal: item.signal, timedOut: item.timed_out }
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const id = operand(operands, 0, 'ID')
  noMoreThan(operands, 1)
  const sandbox = await Sandbox.get(id, { client: connect(values) })
  const all = (await sandbox.processes()).map((process) => process.resource)
  const shown = values.running === true ? all.filter((item) => item.state === 'running') : all
  await printList(io, formatOf(values), shown, columns(io.now()))
  return 0
}
