/** `capacity`: what the fleet offers and what waits for it. */
import type { Capacity } from '@sandglass/sdk'
import { formatOf, noMoreThan, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { type Column, renderFields, renderTable } from '../table.ts'
import { durationText, thousands } from '../text.ts'

export const command: Command = {
  usage: 'capacity',
  help: `Shows what hosts offer by region and class, the largest room that is free on one of them, what waits for a host and why, and how long a start
takes. For operators.`,
  run,
}

type ClassCapacity = Capacity['classes'][number]
type Demand = Capacity['demand'][number]

const MS_PER_SECOND = 1_000

const amounts = ({ vcpu, memory_mb, disk_gb }: Demand['asked']): string => `${vcpu} vCPU, ${thousands(memory_mb)} MB, ${thousands(disk_gb)} GB`
const of = (reserved: number, offered: number): string => `${thousands(reserved)}/${thousands(offered)}`
const hostsOf = ({ ready, cordoned, lost }: ClassCapacity['hosts']): string =>
  [`${ready} ready`, ...(cordoned > 0 ? [`${cordoned} cordoned`] : []), ...(lost > 0 ? [`${lost} lost`] : [])].join(', ')

const CLASSES: readonly Column<ClassCapacity>[] = [
  { title: 'REGION', value: (row) => row.region },
  { title: 'CLASS', value: (row) => row.class ?? '-' },
  { title: 'HOSTS', value: (row) => hostsOf(row.hosts) },
  { title: 'CPU', value: (row) => of(row.reserved.vcpu, row.offered.vcpu), align: 'right' },
  { title: 'MEMORY MB', value: (row) => of(row.reserved.memory_mb, row.offered.memory_mb), align: 'right' },
  { title: 'DISK GB', value: (row) => of(row.reserved.disk_gb, row.offered.disk_gb), align: 'right' },
  { title: 'LARGEST FREE', value: (row) => amounts(row.largest_free) },
  { title: 'POOL', value: (row) => String(row.pool.target), align: 'right' },
]

const DEMAND: readonly Column<Demand>[] = [
  { title: 'REGION', value: (row) => row.region },
  { title: 'ISOLATION', value: (row) => row.isolation },
  { title: 'WAITING', value: (row) => String(row.waiting), align: 'right' },
  { title: 'OLDEST', value: (row) => durationText(row.oldest_waiting_seconds * MS_PER_SECOND), align: 'right' },
  { title: 'ASKED', value: (row) => amounts(row.asked) },
  { title: 'LARGEST', value: (row) => amounts(row.largest) },
  { title: 'REASONS', value: (row) => row.reasons.map(({ code, count }) => `${count} ${code}`).join(', ') },
]

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, SERVER_OPTIONS)
  noMoreThan(operands, 0)
  await printObject(io, formatOf(values), await connect(values).capacity(), describe)
  return 0
}

function describe(capacity: Capacity): string {
  const { samples, median_seconds: median } = capacity.start_lead
  const figures = renderFields([
    ['waiting', String(capacity.waiting)],
    ['start', median === null ? 'nothing was started in the last ten minutes' : `${median.toFixed(2)} s from placement to ready, median of ${samples}`],
  ])
  const demand = capacity.demand.length === 0 ? '' : `\n${renderTable(DEMAND, capacity.demand)}`
  return `${renderTable(CLASSES, capacity.classes)}\n${figures}${demand}`
}
