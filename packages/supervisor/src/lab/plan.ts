/**
 * A lab: a small fleet on one machine, each node in a network namespace of its own on one bridge, to see what happens when a node is cut off, killed,
 * paused, slowed, set to another time or filled up. Real roles, real Postgres, real agents.
 *
 * Pure: which nodes there are, and where. What it takes to make them is in the other files of this folder.
 */
import { CodedError } from '@sandglass/contract/errors'
import { closed, oneOf } from '@sandglass/contract/schema'
import Type, { type Static } from 'typebox'

export const NODE_KINDS = ['postgres', 'control-plane', 'gateway', 'host-agent'] as const
export const LAB_DRIVERS = ['fake', 'gvisor'] as const

const NodeSchema = closed({
  name: Type.String({ pattern: '^[a-z]{1,8}[0-9]{0,2}$' }),
  kind: oneOf(NODE_KINDS),
  address: Type.String(),
})

export const LabPlanSchema = closed({
  /** Short; everything that the lab makes on the machine carries it. */
  id: Type.String({ pattern: '^[0-9a-f]{8}$' }),
  home: Type.String(),
  cache: Type.String(),
  code: Type.String(),
  driver: oneOf(LAB_DRIVERS),
  /** Of the /24 network; `.1` is this machine's own namespace. */
  network: Type.String({ pattern: '^\\d+\\.\\d+\\.\\d+$' }),
  nodes: Type.Array(NodeSchema),
})
export type LabPlan = Static<typeof LabPlanSchema>
export type LabNode = Static<typeof NodeSchema>
export type NodeKind = LabNode['kind']
export type LabDriver = LabPlan['driver']

export type LabShape = { readonly hosts: number; readonly controlPlanes: number; readonly gateways: number; readonly driver: LabDriver }

export const DEFAULT_SHAPE: LabShape = { hosts: 3, controlPlanes: 2, gateways: 2, driver: 'fake' }

const MOST: Readonly<Record<NodeKind, number>> = { postgres: 1, 'control-plane': 9, gateway: 9, 'host-agent': 99 }
/** Addresses begin here, a row for each kind. */
const FIRST_ADDRESS: Readonly<Record<NodeKind, number>> = { postgres: 10, 'control-plane': 11, gateway: 21, 'host-agent': 101 }
const SHORT_NAME: Readonly<Record<NodeKind, string>> = { postgres: 'postgres', 'control-plane': 'cp', gateway: 'gw', 'host-agent': 'h' }

export const PORTS = { api: 7070, gateway: 7071, dataPlane: 7072, hostHealth: 7073, internal: 7074, postgres: 5432 } as const

export type LabPlace = { readonly id: string; readonly home: string; readonly cache: string; readonly code: string; readonly network: string }

/** @throws CodedError `invalid_request` for more nodes than there are addresses */
export function planLab(shape: LabShape, place: LabPlace): LabPlan {
  const counts: Readonly<Record<NodeKind, number>> = {
    postgres: 1,
    'control-plane': shape.controlPlanes,
    gateway: shape.gateways,
    'host-agent': shape.hosts,
  }
  for (const kind of NODE_KINDS) {
    if (counts[kind] < 1 || counts[kind] > MOST[kind]) throw new CodedError('invalid_request', `A lab has 1 to ${MOST[kind]} of ${kind}, not ${counts[kind]}.`)
  }
  const nodes = NODE_KINDS.flatMap((kind) =>
    Array.from({ length: counts[kind] }, (_, index) => ({
      name: kind === 'postgres' ? SHORT_NAME[kind] : `${SHORT_NAME[kind]}${index + 1}`,
      kind,
      address: `${place.network}.${FIRST_ADDRESS[kind] + index}`,
    })),
  )
  return { ...place, driver: shape.driver, nodes }
}

export const shapeOf = ({ nodes, driver }: LabPlan): LabShape => {
  const count = (kind: NodeKind): number => nodes.filter((node) => node.kind === kind).length
  return { hosts: count('host-agent'), controlPlanes: count('control-plane'), gateways: count('gateway'), driver }
}

/** @throws CodedError `invalid_request` naming those that there are */
export function nodeOf(plan: LabPlan, name: string): LabNode {
  const found = plan.nodes.find((node) => node.name === name)
  if (found === undefined) throw new CodedError('invalid_request', `There is no node ${name}; there are ${plan.nodes.map((node) => node.name).join(', ')}.`)
  return found
}

export const ownAddress = (plan: LabPlan): string => `${plan.network}.1`
const addressesOf = (plan: LabPlan, kind: NodeKind): string[] => plan.nodes.filter((node) => node.kind === kind).map((node) => node.address)

/** Of every control plane, as clients take it. */
export const apiUrls = (plan: LabPlan): string =>
  addressesOf(plan, 'control-plane')
    .map((address) => `http://${address}:${PORTS.api}`)
    .join(',')
/** Of every control plane, as hosts and gateways take it. */
export const internalUrls = (plan: LabPlan): string =>
  addressesOf(plan, 'control-plane')
    .map((address) => `https://${address}:${PORTS.internal}`)
    .join(',')
export const gatewayUrls = (plan: LabPlan): string =>
  addressesOf(plan, 'gateway')
    .map((address) => `http://${address}:${PORTS.gateway}`)
    .join(',')

/** Names on the machine. Interfaces have at most 15 characters. */
export const names = {
  /** Of every namespace of the lab begins so. */
  prefix: (id: string): string => `sglab-${id}-`,
  bridge: (id: string): string => `sglab-${id}-net`,
  netns: (id: string, node: string): string => `sglab-${id}-${node}`,
  /** This machine's end of the way into the lab. */
  uplink: (id: string): string => `sglab${id}`,
  port: (node: string): string => `p-${node}`,
  /** What the host agent marks its own with. */
  installation: (id: string, node: string): string => `lab${id}${node}`,
}
