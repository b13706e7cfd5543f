/** The lab in one look: each node, whether it runs and serves, and what was done to it. */
import { paths } from '../installation.ts'
import { conditionsOf } from './faults.ts'
import type { LabState } from './lab-state.ts'
import { type NodeState, stateOf } from './node-process.ts'
import { hostStatuses, isReady } from './node-readiness.ts'
import { apiUrls, gatewayUrls, type LabDriver, type NodeKind } from './plan.ts'

export type LabNodeStatus = {
  readonly name: string
  readonly kind: NodeKind
  readonly address: string
  readonly state: NodeState
  readonly pid: number | null
  /** As this machine sees it; of a host, what its control plane says. */
  readonly ready: boolean
  readonly host_status: string | null
  readonly partitioned: boolean
  readonly slow: boolean
  /** Its wall clock ahead of this machine's. */
  readonly clock_seconds: number
  readonly disk_full: boolean
}

export type LabStatus = {
  readonly id: string
  readonly home: string
  readonly driver: LabDriver
  /** Of every control plane, as SANDGLASS_URL takes it. */
  readonly api_url: string
  readonly gateway_url: string
  readonly admin_key_file: string
  readonly nodes: readonly LabNodeStatus[]
}

export async function labStatus({ plan }: LabState): Promise<LabStatus> {
  const hosts = await hostStatuses(plan)
  const nodes = await Promise.all(
    plan.nodes.map(async (node) => {
      const { name, kind, address } = node
      const hostStatus = kind === 'host-agent' ? (hosts.get(name) ?? null) : null
      const ready = kind === 'host-agent' ? hostStatus === 'ready' : await isReady(plan, node)
      return { name, kind, address, ...stateOf(plan, node), ready, host_status: hostStatus, ...conditionsOf(plan, node) }
    }),
  )
  const { id, home, driver } = plan
  return { id, home, driver, api_url: apiUrls(plan), gateway_url: gatewayUrls(plan), admin_key_file: paths.adminKey(home), nodes }
}
