/** A lab as people see it. */
import type { LabNodeStatus, LabStatus } from '@sandglass/supervisor/lab'
import { type Column, renderFields, renderTable } from './table.ts'

function conditions(node: LabNodeStatus): string {
  const found: string[] = []
  if (node.partitioned) found.push('partitioned')
  if (node.slow) found.push('slow')
  if (node.disk_full) found.push('disk full')
  if (node.clock_seconds !== 0) found.push(`clock ${node.clock_seconds > 0 ? '+' : ''}${node.clock_seconds} s`)
  return found.join(', ') || '-'
}

const COLUMNS: readonly Column<LabNodeStatus>[] = [
  { title: 'NODE', value: (node) => node.name },
  { title: 'ROLE', value: (node) => node.kind },
  { title: 'ADDRESS', value: (node) => node.address },
  { title: 'PROCESS', value: (node) => node.state },
  { title: 'PID', value: (node) => (node.pid === null ? '-' : String(node.pid)), align: 'right' },
  { title: 'SERVES', value: (node) => (node.host_status === null ? (node.ready ? 'yes' : 'no') : node.host_status) },
  { title: 'CONDITION', value: conditions },
]

export function describeLab(lab: LabStatus): string {
  const fields = renderFields([
    ['lab', `${lab.home} (${lab.id}), driver ${lab.driver}`],
    ['API', lab.api_url],
    ['gateway', lab.gateway_url],
    ['admin key', lab.admin_key_file],
  ])
  return `${fields}\n${renderTable([...COLUMNS], lab.nodes)}\nTry:  SANDGLASS_HOME=${lab.home} ./sandglass create --isolation ${lab.driver} --restart on_host_loss\n`
}
