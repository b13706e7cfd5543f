/**
 * The lab's network: a namespace for each node, one more with the bridge between them, and a way in from this machine's own namespace. There is no route out
 * of it: nothing is sent elsewhere.
 */
import { existsSync, readdirSync } from 'node:fs'
import { CodedError } from '@sandglass/contract/errors'
import { run, tryRun } from './command.ts'
import { type LabNode, type LabPlan, names, nodeOf, ownAddress } from './plan.ts'

const NETNS = '/run/netns'
const BRIDGE = 'br0'
/** In each node. */
const INTERFACE = 'eth0'
const TABLE = 'sandglass_lab'
/** For benchmarks between networks (RFC 2544): nobody's in real life. */
const NETWORKS = Array.from({ length: 256 }, (_, index) => `198.18.${index}`)

export const inNode = (plan: LabPlan, node: LabNode, command: readonly string[]): string[] => [
  'nsenter',
  // Only the network: another mount namespace would keep copies of the machine's mounts alive.
  `--net=${NETNS}/${names.netns(plan.id, node.name)}`,
  '--',
  ...command,
]

const namespacesOf = (id: string): string[] => {
  try {
    return readdirSync(NETNS).filter((name) => name.startsWith(names.prefix(id)))
  } catch {
    return []
  }
}

/** A /24 that this machine has no route to, the same one for the same lab where it can be. @throws CodedError `internal` */
export function freeNetwork(id: string): string {
  const taken = run(['ip', '-4', 'route', 'show', 'table', 'all'])
  const first = Number.parseInt(id.slice(0, 2), 16)
  const found = [...NETWORKS.slice(first), ...NETWORKS.slice(0, first)].find((network) => !taken.includes(`${network}.`))
  if (found === undefined) throw new CodedError('internal', 'Every network of 198.18.0.0/16 is in use on this machine.')
  return found
}

export function makeNetwork(plan: LabPlan): void {
  const bridge = names.bridge(plan.id)
  run(['ip', 'netns', 'add', bridge])
  // Frames between nodes are delivered at once: without a spanning tree there is nothing to learn first.
  run(['ip', '-n', bridge, 'link', 'add', BRIDGE, 'type', 'bridge', 'forward_delay', '0', 'stp_state', '0'])
  run(['ip', '-n', bridge, 'link', 'set', BRIDGE, 'up'])
  for (const node of plan.nodes) {
    const netns = names.netns(plan.id, node.name)
    run(['ip', 'netns', 'add', netns])
    join(bridge, names.port(node.name), ['netns', netns])
    run(['ip', '-n', netns, 'link', 'set', 'lo', 'up'])
    run(['ip', '-n', netns, 'address', 'add', `${node.address}/24`, 'dev', INTERFACE])
    run(['ip', '-n', netns, 'link', 'set', INTERFACE, 'up'])
  }
  const uplink = names.uplink(plan.id)
  run(['ip', '-n', bridge, 'link', 'add', 'p-root', 'type', 'veth', 'peer', 'name', uplink, 'netns', '1'])
  run(['ip', '-n', bridge, 'link', 'set', 'p-root', 'master', BRIDGE, 'up'])
  run(['ip', 'address', 'add', `${ownAddress(plan)}/24`, 'dev', uplink])
  run(['ip', 'link', 'set', uplink, 'up'])
}

/** The way in is made last. */
export const isNetworkWhole = ({ id }: LabPlan): boolean => existsSync(`/sys/class/net/${names.uplink(id)}`)

function join(bridge: string, port: string, peer: readonly string[]): void {
  run(['ip', '-n', bridge, 'link', 'add', port, 'type', 'veth', 'peer', 'name', INTERFACE, ...peer])
  run(['ip', '-n', bridge, 'link', 'set', port, 'master', BRIDGE, 'up'])
}

/** Also what a lab that was not ended left. Every process in it must have ended. */
export function removeNetwork(id: string): void {
  tryRun(['ip', 'link', 'delete', names.uplink(id)])
  for (const name of namespacesOf(id)) tryRun(['ip', 'netns', 'delete', name])
}

/** Every process in a namespace of the lab, also one that its role has started and forgotten. */
export const processesIn = (netns: string): number[] => {
  const { stdout } = tryRun(['ip', 'netns', 'pids', netns])
  return stdout.split('\n').filter(Boolean).map(Number)
}

export const processesOfLab = (id: string): number[] => namespacesOf(id).flatMap(processesIn)

/**
 * Drops everything between a node and the others, in both directions, also of connections that stand. Both ends see silence, no refusal.
 * @param from empty: everybody, this machine's own namespace as well
 */
export function partition(plan: LabPlan, node: LabNode, from: readonly string[]): void {
  const addresses = from.map((name) => nodeOf(plan, name).address)
  const set = addresses.length === 0 ? '' : `{ ${addresses.join(', ')} }`
  const rules = (side: 'saddr' | 'daddr', device: 'iifname' | 'oifname') => (set === '' ? `${device} "${INTERFACE}" drop` : `ip ${side} ${set} drop`)
  const table = `table inet ${TABLE}
delete table inet ${TABLE}
table inet ${TABLE} {
  chain input { type filter hook input priority 0; ${rules('saddr', 'iifname')}; }
  chain output { type filter hook output priority 0; ${rules('daddr', 'oifname')}; }
}
`
  const { ok, stderr } = tryRun(inNode(plan, node, ['nft', '-f', '-']), table)
  if (!ok) throw new CodedError('internal', `${node.name} could not be cut off: ${stderr.trim()}. Is nftables installed? Type: apt-get install nftables`)
}

export function isPartitioned(plan: LabPlan, node: LabNode): boolean {
  return tryRun(inNode(plan, node, ['nft', 'list', 'table', 'inet', TABLE])).ok
}

/** @param kbitPerSecond in each direction */
export function slow(plan: LabPlan, node: LabNode, kbitPerSecond: number): void {
  const shape = ['root', 'tbf', 'rate', `${kbitPerSecond}kbit`, 'burst', '16kb', 'latency', '500ms']
  run(['tc', '-n', names.netns(plan.id, node.name), 'qdisc', 'replace', 'dev', INTERFACE, ...shape])
  run(['tc', '-n', names.bridge(plan.id), 'qdisc', 'replace', 'dev', names.port(node.name), ...shape])
}

export function isSlow(plan: LabPlan, node: LabNode): boolean {
  return tryRun(['tc', '-n', names.netns(plan.id, node.name), 'qdisc', 'show', 'dev', INTERFACE]).stdout.includes('tbf')
}

/** Whole and fast again. */
export function healNetwork(plan: LabPlan, node: LabNode): void {
  tryRun(inNode(plan, node, ['nft', 'delete', 'table', 'inet', TABLE]))
  tryRun(['tc', '-n', names.netns(plan.id, node.name), 'qdisc', 'delete', 'dev', INTERFACE, 'root'])
  tryRun(['tc', '-n', names.bridge(plan.id), 'qdisc', 'delete', 'dev', names.port(node.name), 'root'])
}
