/** `top`: what sandboxes use, live. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Format, formatOf, parseArguments, positive, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { Interrupt, Interrupted } from '../interrupt.ts'
import type { Io } from '../io.ts'
import { LiveScreen } from '../live-screen.ts'
import { printList } from '../print.ts'
import { type Column, renderTable } from '../table.ts'
import { bytesText, relativeTime } from '../text.ts'
import { type Row, Sampler } from '../top/sample.ts'

const OPTIONS = { ...SERVER_OPTIONS, once: { type: 'boolean' }, interval: { type: 'string' } } as const

export const command: Command = {
  usage: 'top [ID…] [--once] [--interval S]',
  help: `Shows what running sandboxes use, busiest first, again and again until Ctrl-C; without a terminal, and with --json, once.

CPU is of one CPU, so 2 vCPU can show 200 %. Memory is what counts against the limit, the sandbox's own kernel included. All is
counted by the hosts from outside; a sandbox cannot tell them otherwise.

  --once         print one table, measured over a second, and end
  --interval S   seconds between two looks, default 2`,
  run,
}

const INTERVAL_SECONDS = 2
const ONCE_MS = 1_000
const NONE = '-'

const perSecond = (value: number | undefined): string => (value === undefined ? NONE : `${bytesText(value)}/s`)

function memory({ usage }: Row): string {
  if (usage === null) return NONE
  return usage.memoryLimitBytes === 0 ? bytesText(usage.memoryBytes) : `${bytesText(usage.memoryBytes)} / ${bytesText(usage.memoryLimitBytes)}`
}

function columns(nowMs: number): Column<Row>[] {
  return [
    { title: 'ID', value: ({ sandbox }) => sandbox.id },
    { title: 'NAME', value: ({ sandbox }) => sandbox.name ?? '' },
    { title: 'CPU', value: ({ rates }) => (rates === null ? NONE : `${rates.cpuPercent.toFixed(1)} %`), align: 'right' },
    { title: 'OF', value: ({ sandbox }) => `${sandbox.resources.vcpu * 100} %`, align: 'right' },
    { title: 'MEMORY', value: memory, align: 'right' },
    { title: 'DISK READ', value: ({ rates }) => perSecond(rates?.diskReadBytes), align: 'right' },
    { title: 'WRITTEN', value: ({ rates }) => perSecond(rates?.diskWrittenBytes), align: 'right' },
    { title: 'NET IN', value: ({ rates }) => perSecond(rates?.networkReceivedBytes), align: 'right' },
    { title: 'OUT', value: ({ rates }) => perSecond(rates?.networkSentBytes), align: 'right' },
    { title: 'EXPIRES', value: ({ sandbox }) => relativeTime(sandbox.expires_at, nowMs) },
  ]
}

/** In the words of the API, with what follows from two answers beside it. */
function wireOf({ sandbox, usage, rates }: Row): object {
  return {
    id: sandbox.id,
    name: sandbox.name,
    vcpu: sandbox.resources.vcpu,
    cpu_percent: rates?.cpuPercent ?? null,
    disk_read_bytes_per_second: rates?.diskReadBytes ?? null,
    disk_written_bytes_per_second: rates?.diskWrittenBytes ?? null,
    network_received_bytes_per_second: rates?.networkReceivedBytes ?? null,
    network_sent_bytes_per_second: rates?.networkSentBytes ?? null,
    cpu_ms: usage?.cpuMs ?? null,
    memory_bytes: usage?.memoryBytes ?? null,
    memory_limit_bytes: usage?.memoryLimitBytes ?? null,
    disk_read_bytes: usage?.diskReadBytes ?? null,
    disk_written_bytes: usage?.diskWrittenBytes ?? null,
    network_received_bytes: usage?.networkReceivedBytes ?? null,
    network_sent_bytes: usage?.networkSentBytes ?? null,
  }
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const seconds = positive('--interval', values.interval) ?? INTERVAL_SECONDS
  const format = formatOf(values)
  const sampler = new Sampler(connect(values), operands)
  using interrupt = new Interrupt(io)
  try {
    if (values.once === true || format !== 'human' || !io.outputIsTerminal) return await once(io, sampler, format, interrupt.signal)
    return await live(io, sampler, seconds * 1000, interrupt.signal)
  } catch (error) {
    if (interrupt.signal.aborted && interrupt.signal.reason instanceof Interrupted)
      return interrupt.signal.reason.signal === 'INT' ? 0 : interrupt.signal.reason.exitCode
    throw error
  }
}

async function once(io: Io, sampler: Sampler, format: Format, signal: AbortSignal): Promise<number> {
  await sampler.round(signal)
  await delay(ONCE_MS, undefined, { signal })
  const rows = await sampler.round(signal)
  if (format === 'human') await io.stdout.write(renderTable(columns(io.now()), rows))
  else await printList(io, format, rows.map(wireOf), [])
  return 0
}

async function live(io: Io, sampler: Sampler, intervalMs: number, signal: AbortSignal): Promise<number> {
  await using screen = await LiveScreen.open(io)
  for (;;) {
    const rows = await sampler.round(signal)
    const title = `${rows.length} running, every ${intervalMs / 1000} s, Ctrl-C ends`
    await screen.draw([title, '', ...renderTable(columns(io.now()), rows).trimEnd().split('\n')])
    await delay(intervalMs, undefined, { signal })
  }
}
