/** Whether a node serves. A host does when a control plane says so: what it says of itself is known only in its own namespace. */
import { readFileSync } from 'node:fs'
import { HostSchema } from '@sandglass/contract/host'
import { parserOf } from '@sandglass/contract/schema'
import Type from 'typebox'
import { paths } from '../installation.ts'
import { answersReady, postgresIsReady } from '../readiness.ts'
import { processOf } from './node-process.ts'
import { type LabNode, type LabPlan, PORTS } from './plan.ts'

const CALL_MS = 1_000
const hosts = parserOf(Type.Object({ items: Type.Array(Type.Pick(HostSchema, ['name', 'status'])) }))

export async function isReady(plan: LabPlan, node: LabNode): Promise<boolean> {
  switch (node.kind) {
    case 'control-plane':
      return answersReady(`http://${node.address}:${PORTS.api}`)
    case 'gateway':
      return answersReady(`http://${node.address}:${PORTS.gateway}`)
    case 'postgres': {
      const found = processOf(plan, node)
      return found !== undefined && (await postgresIsReady(paths.postgresData(plan.home), found.pid))
    }
    case 'host-agent':
      return (await hostStatuses(plan)).get(node.name) === 'ready'
  }
}

/** Of each host by name, from the first control plane that answers. */
export async function hostStatuses(plan: LabPlan): Promise<ReadonlyMap<string, string>> {
  const headers = { authorization: `Bearer ${readFileSync(paths.adminKey(plan.home), 'utf8').trim()}` }
  for (const node of plan.nodes.filter(({ kind }) => kind === 'control-plane')) {
    try {
      const response = await fetch(`http://${node.address}:${PORTS.api}/v1/hosts?limit=200`, { headers, signal: AbortSignal.timeout(CALL_MS) })
      if (response.status === 200) return new Map(hosts.parse(await response.json()).items.map((host) => [host.name, host.status]))
    } catch {
      // The next one may answer.
    }
  }
  return new Map()
}
