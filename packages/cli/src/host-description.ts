/** A host for people: a line of a table, or all of it. */
import type { Drain, Host } from '@sandglass/sdk'
import { poolOf, provedIsolation, reservedOf } from './host-summary.ts'
import { type Column, renderFields } from './table.ts'
import { durationText, relativeTime } from './text.ts'

const MS_PER_SECOND = 1_000

const lease = ({ lease_age_seconds: age }: Host): string => (age === null ? '-' : durationText(age * MS_PER_SECOND))

const labelsOf = ({ labels }: Host): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(' ') || '-'

/** `draining (3 left)`; cordoned is told of a lost host too. */
export function statusOf({ status, cordoned, drain }: Host): string {
  if (drain !== null && status !== 'drained') return `${status} (${drain.left} left)`
  return status === 'lost' && cordoned ? 'lost, cordoned' : status
}

export const HOST_COLUMNS: readonly Column<Host>[] = [
  { title: 'ID', value: (host) => host.id },
  { title: 'NAME', value: (host) => host.name },
  { title: 'STATUS', value: statusOf },
  { title: 'LEASE AGE', value: lease, align: 'right' },
  { title: 'SANDBOXES', value: (host) => String(host.sandboxes), align: 'right' },
  { title: 'POOL', value: poolOf, align: 'right' },
  { title: 'CPU', value: (host) => reservedOf(host).cpu, align: 'right' },
  { title: 'MEMORY', value: (host) => reservedOf(host).memory, align: 'right' },
  { title: 'DISK', value: (host) => reservedOf(host).disk, align: 'right' },
  { title: 'LABELS', value: labelsOf },
]

/** What a drain waits for, one a line; it is over when there is nothing. */
export const waitsOf = (drain: Drain): string[] => drain.waits_for.map(({ reason, count, detail }) => `${count} ${reason}: ${detail}`)

export function describeHost(host: Host, nowMs: number): string {
  const { cpu, memory, disk } = reservedOf(host)
  return renderFields([
    ['id', host.id],
    ['name', host.name],
    ['status', statusOf(host)],
    ['cordoned', host.cordoned ? 'yes' : 'no'],
    ...drainFields(host.drain, nowMs),
    ['labels', labelsOf(host)],
    ['region', host.region],
    ['lease', `${host.lease.state}, ${host.lease_age_seconds === null ? 'never renewed' : `renewed ${lease(host)} ago`}, epoch ${host.epoch}`],
    ...(host.lease.fenced_at === null ? [] : [['fenced', `${host.lease.fenced_at} (${relativeTime(host.lease.fenced_at, nowMs)})`] satisfies [string, string]]),
    ['sandboxes', String(host.sandboxes)],
    ['reserved', `${cpu} vCPU, ${memory} of memory, ${disk} of disk`],
    ['pool', `${host.pool.target} idle members, ${host.pool.held} held`],
    ['isolation', provedIsolation(host).join(', ') || 'none proved'],
    ['version', host.version],
    ['created', `${host.created_at} (${relativeTime(host.created_at, nowMs)})`],
  ])
}

function drainFields(drain: Drain | null, nowMs: number): [string, string][] {
  if (drain === null) return []
  const deadline = `${drain.deadline_at} (${relativeTime(drain.deadline_at, nowMs)})`
  return [
    ['drain', `${drain.state}, ${drain.left} left, since ${drain.started_at}, deadline ${deadline}`],
    ...waitsOf(drain).map((line): [string, string] => ['waits for', line]),
  ]
}
