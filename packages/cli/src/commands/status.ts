/** `status`: the installation in one screen. */
import { type Host, Sandbox, type SandboxResource, Sandglass, SandglassError } from '@sandglass/sdk'
import { homeFrom, type InstallationStatus, type RoleStatus, readStatus } from '@sandglass/supervisor'
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import { statusOf } from '../host-description.ts'
import { poolOf, provedIsolation, reservedOf } from '../host-summary.ts'
import type { Io } from '../io.ts'
import { type Column, renderFields, renderTable } from '../table.ts'
import { relativeTime } from '../text.ts'

export const command: Command = {
  usage: 'status',
  help: `Shows roles, hosts with reserved and offered capacity, sandboxes by state, the create that waits longest, and the last failures with their reason.
The exit code is 0 when the installation runs (ready or degraded), else 1.`,
  run,
}

type View = {
  readonly installation: InstallationStatus
  /** Null when the API does not answer. */
  readonly hosts: readonly Host[] | null
  readonly sandboxes: readonly SandboxResource[] | null
}

const CALL_TIMEOUT_MS = 5_000
const SHOWN_FAILURES = 5
const PAGE = 200

async function read(): Promise<View> {
  const installation = readStatus(homeFrom(process.env))
  if (installation.state !== 'ready' && installation.state !== 'degraded') return { installation, hosts: null, sandboxes: null }
  try {
    const client = new Sandglass()
    const hosts: Host[] = []
    for await (const host of client.hosts.list({ timeoutMs: CALL_TIMEOUT_MS })) hosts.push(host)
    const sandboxes: SandboxResource[] = []
    for await (const sandbox of Sandbox.list({ client, timeoutMs: CALL_TIMEOUT_MS, pageSize: PAGE })) sandboxes.push(sandbox.resource)
    return { installation, hosts, sandboxes }
  } catch (error) {
    if (error instanceof SandglassError) return { installation, hosts: null, sandboxes: null }
    throw error
  }
}

const roleColumns = (nowMs: number): Column<RoleStatus>[] => [
  { title: 'ROLE', value: (role) => role.name },
  { title: 'STATE', value: (role) => role.state },
  { title: 'PID', value: (role) => (role.pid === null ? '-' : String(role.pid)), align: 'right' },
  { title: 'SINCE', value: (role) => relativeTime(role.since, nowMs) },
  { title: 'RESTARTS', value: (role) => String(role.restarts), align: 'right' },
  { title: 'METRICS', value: (role) => (role.url === null ? '-' : `${role.url}/metrics`) },
  { title: 'LAST EXIT', value: (role) => role.last_exit ?? '-' },
]

const hostColumns = (nowMs: number): Column<Host>[] => [
  { title: 'HOST', value: (host) => host.name },
  { title: 'STATUS', value: statusOf },
  { title: 'VERSION', value: (host) => host.version },
  { title: 'RENEWED', value: (host) => relativeTime(host.renewed_at, nowMs) },
  { title: 'SANDBOXES', value: (host) => String(host.sandboxes), align: 'right' },
  { title: 'POOL', value: (host) => poolOf(host), align: 'right' },
  { title: 'CPU', value: (host) => reservedOf(host).cpu, align: 'right' },
  { title: 'MEMORY', value: (host) => reservedOf(host).memory, align: 'right' },
  { title: 'DISK', value: (host) => reservedOf(host).disk, align: 'right' },
  { title: 'ISOLATION', value: (host) => provedIsolation(host).join(', ') || 'none proved' },
]

function sandboxFields(sandboxes: readonly SandboxResource[], nowMs: number): [string, string][] {
  const counts = new Map<string, number>()
  for (const { status } of sandboxes) counts.set(status, (counts.get(status) ?? 0) + 1)
  const fields: [string, string][] = [['sandboxes', [...counts].map(([status, count]) => `${count} ${status}`).join(', ') || 'none']]
  const waiting = sandboxes.filter((item) => item.status === 'pending').sort((left, right) => left.created_at.localeCompare(right.created_at))[0]
  if (waiting !== undefined)
    fields.push(['oldest waiting', `${waiting.id}, ${relativeTime(waiting.created_at, nowMs)}: ${waiting.unschedulable_reason ?? 'being placed'}`])
  for (const item of sandboxes.filter(({ status }) => status === 'failed').slice(0, SHOWN_FAILURES))
    fields.push(['failed', `${item.id}: ${item.status_reason ?? 'no reason given'}`])
  return fields
}

function describe({ installation, hosts, sandboxes }: View, nowMs: number): string {
  const parts = [
    renderFields([
      ['installation', `${installation.home} (${installation.id})`],
      ['state', installation.state],
      ...(installation.failure === null ? [] : [['because', `${installation.failure.message} [${installation.failure.code}]`] as const]),
      ['API', installation.api_url ?? '-'],
      ['gateway', installation.gateway_url ?? '-'],
      ['admin key', installation.admin_key_file ?? '-'],
    ]),
  ]
  if (installation.roles.length > 0) parts.push(renderTable(roleColumns(nowMs), installation.roles))
  if (hosts !== null) parts.push(renderTable(hostColumns(nowMs), hosts))
  if (sandboxes !== null) parts.push(renderFields(sandboxFields(sandboxes, nowMs)))
  return parts.join('\n')
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, COMMON_OPTIONS)
  noMoreThan(operands, 0)
  const view = await read()
  await io.stdout.write(formatOf(values) === 'human' ? describe(view, io.now()) : `${JSON.stringify(view)}\n`)
  const { state } = view.installation
  return state === 'ready' || state === 'degraded' ? 0 : 1
}
