/** `inspect`: everything that a person asks about a sandbox. */
import { type ProcessResource, Sandbox, type SandboxResource, SandglassError } from '@sandglass/sdk'
import { formatOf, noMoreThan, operand, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { renderFields } from '../table.ts'
import { durationText, relativeTime, shellQuoted, shortened, thousands } from '../text.ts'

export const command: Command = {
  usage: 'inspect ID',
  help: 'Shows what a sandbox is, why it is in its state, where it runs and since when, its limits, its isolation with the evidence, and what runs in it.',
  run,
}

const COMMAND_CHARACTERS = 60
const SHOWN_PROCESSES = 10

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  const id = operand(operands, 0, 'ID')
  noMoreThan(operands, 1)
  const sandbox = await Sandbox.get(id, { client: connect(values) })
  if (formatOf(values) !== 'human') await io.stdout.write(`${JSON.stringify(sandbox.resource)}\n`)
  else await io.stdout.write(describe(sandbox.resource, await processesOf(sandbox), io.now()))
  return 0
}

/** Undefined when they cannot be read now; the rest is worth showing all the same. */
async function processesOf(sandbox: Sandbox): Promise<ProcessResource[] | undefined> {
  if (sandbox.status !== 'ready') return undefined
  try {
    return (await sandbox.processes()).map((process) => process.resource)
  } catch (error) {
    if (error instanceof SandglassError) return undefined
    throw error
  }
}

const moment = (at: string | null, nowMs: number): string => (at === null ? '-' : `${at} (${relativeTime(at, nowMs)})`)

const pairs = (record: Readonly<Record<string, string | number>>): string =>
  Object.entries(record)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ') || '-'

function reason(item: SandboxResource): [string, string][] {
  const why = item.status_reason ?? item.unschedulable_reason
  return why === null ? [] : [['because', why]]
}

/** One that is stopped or failed has ended and is kept for a while. */
function deadlines(item: SandboxResource, nowMs: number): [string, string][] {
  const ended: [string, string][] = item.ended_at === null ? [] : [['ended', moment(item.ended_at, nowMs)]]
  return item.desired === 'deleted' ? ended : [...ended, ['expires', moment(item.expires_at, nowMs)]]
}

/** What it was promised since it was last ready, in the units that a bill would have. */
function cost(item: SandboxResource, nowMs: number): string {
  if (item.ready_at === null) return '-'
  const seconds = Math.max(0, ((item.ended_at === null ? nowMs : Date.parse(item.ended_at)) - Date.parse(item.ready_at)) / 1000)
  const { vcpu, memory_mb: memory } = item.resources
  return `${Math.round(seconds * vcpu)} vCPU seconds, ${((seconds * memory) / 1024).toFixed(0)} GB seconds of memory`
}

function describe(item: SandboxResource, processes: ProcessResource[] | undefined, nowMs: number): string {
  const { resources } = item
  return renderFields([
    ['id', item.id],
    ['name', item.name ?? '-'],
    ['status', item.status],
    ...reason(item),
    ['desired', item.desired],
    ['writable layer', item.writable_layer],
    ['restart policy', item.restarts === 0 ? item.restart_policy : `${item.restart_policy}, restarted ${item.restarts} times in a row`],
    ['generation', String(item.generation)],
    ['template', `${item.template.name} ${item.template.digest}`],
    ['resources', `${resources.vcpu} vCPU, ${thousands(resources.memory_mb)} MB memory, ${resources.disk_gb} GB disk`],
    ['isolation', item.isolation === null ? '-' : item.isolation.driver],
    ['evidence', item.isolation === null ? '-' : pairs(item.isolation.evidence)],
    ['network', item.network.mode],
    ['environment', item.env_names.join(' ') || '-'],
    ['metadata', pairs(item.metadata)],
    ['region', item.region],
    ['host', item.host_id ?? '-'],
    ['gateway', item.gateway_url],
    ['created', moment(item.created_at, nowMs)],
    ['ready', moment(item.ready_at, nowMs)],
    [
      'start took',
      item.start_timings_ms === null
        ? '-'
        : pairs(Object.fromEntries(Object.entries(item.start_timings_ms).map(([phase, ms]) => [phase, `${Math.round(ms)} ms`]))),
    ],
    ...deadlines(item, nowMs),
    ['last run used', cost(item, nowMs)],
    ['operation', item.operation_id ?? '-'],
    ...processFields(processes, nowMs),
  ])
}

function processFields(processes: ProcessResource[] | undefined, nowMs: number): [string, string][] {
  if (processes === undefined) return []
  const running = processes.filter((process) => process.state === 'running')
  const lines: [string, string][] = [['processes', `${running.length} running, ${processes.length - running.length} ended`]]
  for (const process of running.slice(0, SHOWN_PROCESSES)) {
    lines.push(['', `${process.id}  since ${durationText(nowMs - process.started_at_ms)}  ${shortened(shellQuoted(process.argv), COMMAND_CHARACTERS)}`])
  }
  return lines
}
