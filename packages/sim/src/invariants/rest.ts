/** What must be so once nothing disturbs any more: what runs is what should run, and nothing is left over or waits. */
import type { Machine } from '../host/machine.ts'
import { hostRecordOf, ownerOf } from './machine-invariants.ts'
import { live, type SandboxState, type Snapshot } from './snapshot.ts'

/** @returns why it is not at rest; undefined: it is */
export function restless(now: Snapshot, machines: readonly Machine[]): string | undefined {
  for (const sandbox of now.sandboxes) {
    const reason = restlessSandbox(now, sandbox, machines)
    if (reason !== undefined) return `${sandbox.id} (wanted ${sandbox.desired}, ${sandbox.observed}, generation ${sandbox.generation}): ${reason}`
  }
  const waiting = new Set(now.sandboxes.filter((sandbox) => hasNoRoom(now, sandbox)).map(({ operation_id }) => operation_id))
  for (const { id, kind, status } of now.operations) if (status === 'pending' && !waiting.has(id)) return `operation ${id} (${kind}) is pending`
  for (const machine of machines) {
    const reason = restlessMachine(now, machine)
    if (reason !== undefined) return reason
  }
  if (now.outbox > 0) return `${now.outbox} wake-ups are in the outbox`
  if (now.unsealed > 0) return `${now.unsealed} events have no position`
  return undefined
}

/** It waits, and rightly so: every host is full, and not of idle members. */
function hasNoRoom(now: Snapshot, sandbox: SandboxState): boolean {
  if (sandbox.observed !== 'pending' || sandbox.waits?.startsWith('no_capacity') !== true || now.pools.some(({ held }) => held > 0)) return false
  return now.hosts.every((host) => host.memory_mb_capacity - host.memory_mb_reserved < sandbox.memory_mb)
}

const SETTLED: Readonly<Record<string, readonly string[]>> = { running: ['ready'], stopped: ['stopped', 'failed'], deleted: ['terminated'] }

function restlessSandbox(now: Snapshot, sandbox: SandboxState, machines: readonly Machine[]): string | undefined {
  if (sandbox.expired && sandbox.desired !== 'deleted') return 'its time is over'
  if (hasNoRoom(now, sandbox)) return undefined
  if (SETTLED[sandbox.desired]?.includes(sandbox.observed) !== true) return `it is not settled${sandbox.waits === null ? '' : ` (${sandbox.waits})`}`
  const assignment = live(now).find((one) => one.sandbox === sandbox.id)
  if (sandbox.desired !== 'running') return assignment === undefined ? undefined : 'its assignment is live'
  const runs = machines.flatMap((machine) =>
    [...machine.runtimes.values()].filter((one) => ownerOf(one)?.sandbox === sandbox.id).map((one) => ({ one, machine })),
  )
  const [first, second] = runs
  if (first === undefined) return 'nothing of it runs'
  if (second !== undefined) return 'it is on two machines'
  if (ownerOf(first.one)?.generation !== sandbox.generation) return `generation ${ownerOf(first.one)?.generation} of it runs`
  if (first.one.state !== 'running' || first.one.frozen) return 'it does not run'
  return hostRecordOf(first.machine)?.host_id === assignment?.host ? undefined : 'it runs where it is not assigned'
}

function restlessMachine(now: Snapshot, machine: Machine): string | undefined {
  const hostId = hostRecordOf(machine)?.host_id
  const held = live(now).filter(({ host }) => host === hostId).length
  const pools = now.pools.filter(({ host }) => host === hostId)
  const members = [...machine.runtimes.values()].filter((runtime) => ownerOf(runtime) === undefined)
  const units = pools.reduce((sum, pool) => sum + pool.held, 0)
  const target = pools.reduce((sum, pool) => sum + pool.target, 0)
  if (units !== target) return `${machine.name} holds ${units} pool units and should have ${target}`
  if (members.length !== units || members.some((member) => member.state !== 'running'))
    return `${machine.name} has ${members.length} pool members; ${units} units are held`
  if (machine.runtimes.size !== held + units) return `${machine.name} has ${machine.runtimes.size} runtimes; ${held + units} should be there`
  for (const directory of machine.directories) if (!machine.runtimes.has(directory)) return `${machine.name} has left ${directory} behind`
  return undefined
}
