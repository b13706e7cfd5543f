/** What can be done to one node of a lab, and undone. */
import { CodedError } from '@sandglass/contract/errors'
import { clockOf, setClock } from './clock.ts'
import { fillDisk, freeDisk, isFull } from './disk.ts'
import type { LabState } from './lab-state.ts'
import { healNetwork, isPartitioned, isSlow, partition, slow } from './network.ts'
import { killNode, killRole, processesOf, signalRole, startProcess, stateOf, stopRole } from './node-process.ts'
import { type LabNode, type LabPlan, nodeOf } from './plan.ts'
import { prepareLab } from './prepare-lab.ts'
import { untilReady } from './ready.ts'

export const DEFAULT_SLOW_KBIT = 256

/** @param from nodes by name; none: everybody, also who uses the lab */
export function partitionNode({ plan }: LabState, name: string, from: readonly string[]): void {
  if (from.includes(name)) throw new CodedError('invalid_request', `${name} cannot be cut off from itself.`)
  partition(plan, nodeOf(plan, name), from)
}

export function slowNode({ plan }: LabState, name: string, kbitPerSecond: number): void {
  slow(plan, nodeOf(plan, name), kbitPerSecond)
}

/** @param seconds that its wall clock is ahead, or behind when negative, from within a second on */
export function skewNode({ plan }: LabState, name: string, seconds: number): void {
  setClock(plan.home, nodeOf(plan, name).name, seconds)
}

/** @throws CodedError `invalid_request` for a node that has no disk of its own */
export function fillNode({ plan }: LabState, name: string): void {
  const node = nodeOf(plan, name)
  if (node.kind !== 'host-agent') throw new CodedError('invalid_request', `Only hosts have a disk of their own; ${name} is a ${node.kind}.`)
  fillDisk(plan.home, name)
}

/** Every process of a node, runtimes too. */
export const processesOfNode = ({ plan }: LabState, name: string): number[] => processesOf(plan, nodeOf(plan, name))

export const isNodeDead = ({ plan }: LabState, name: string): boolean => stateOf(plan, nodeOf(plan, name)).state === 'dead'

export const pauseNode = ({ plan }: LabState, name: string): void => signalRole(plan, nodeOf(plan, name), 'SIGSTOP')
export const resumeNode = ({ plan }: LabState, name: string): void => signalRole(plan, nodeOf(plan, name), 'SIGCONT')

/** @param what `node`: all that runs there, as when a machine loses its power; `role`: its own process alone */
export async function killInLab({ plan }: LabState, name: string, what: 'node' | 'role'): Promise<void> {
  await (what === 'node' ? killNode : killRole)(plan, nodeOf(plan, name))
}

/** Ends its role when it runs, and starts it. @param extra joins the environment of this start @throws CodedError `role_not_ready` */
export async function restartNode(state: LabState, name: string, extra: Readonly<Record<string, string>> = {}, waits = true): Promise<void> {
  const node = nodeOf(state.plan, name)
  await stopRole(state.plan, node)
  await startProcess(await prepareLab(state), node, extra)
  if (waits) await untilReady(state.plan, node)
}

/** Whole, fast, in time, with room, and going on. What is dead stays so. */
export function healNode({ plan }: LabState, name: string): void {
  const node = nodeOf(plan, name)
  healNetwork(plan, node)
  if (node.kind === 'host-agent') freeDisk(plan.home, name)
  if (clockOf(plan.home, node.name) !== 0) setClock(plan.home, name, 0)
  if (stateOf(plan, node).state === 'paused') signalRole(plan, node, 'SIGCONT')
}

export const conditionsOf = (plan: LabPlan, node: LabNode): { partitioned: boolean; slow: boolean; clock_seconds: number; disk_full: boolean } => ({
  partitioned: isPartitioned(plan, node),
  slow: isSlow(plan, node),
  clock_seconds: clockOf(plan.home, node.name),
  disk_full: node.kind === 'host-agent' && isFull(plan.home, node.name),
})
