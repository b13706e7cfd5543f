/** What must hold between the tables and what is on the machines, after every step. */
import { parserOf } from '@sandglass/contract'
import { parseRuntimeName } from '@sandglass/host-agent/domain/runtime-name'
import Type from 'typebox'
import type { Machine } from '../host/machine.ts'
import type { Owner, Runtime } from '../host/runtime.ts'
import { live, type Snapshot } from './snapshot.ts'
import type { Broken } from './table-invariants.ts'

const HOST_RECORD = '/simulated/host/host.json'
const records = parserOf(Type.Object({ host_id: Type.String(), epoch: Type.Number(), floor: Type.Number() }))
const sandboxRecords = parserOf(Type.Object({ runtime: Type.Union([Type.Object({ name: Type.Optional(Type.String()) }), Type.Null()]) }))

/** Whose a runtime is: it was told, or it was started for somebody. */
export function ownerOf(runtime: Runtime): Owner | undefined {
  if (runtime.identity !== null) return runtime.identity
  const parsed = parseRuntimeName(runtime.name)
  return parsed?.kind === 'sandbox' ? { sandbox: parsed.sandbox, generation: parsed.generation } : undefined
}

export const executes = (runtime: Runtime): boolean => runtime.state === 'running' && !runtime.frozen

export function hostRecordOf(machine: Machine): { readonly host_id: string; readonly epoch: number; readonly floor: number } | undefined {
  const text = machine.disk.files.get(HOST_RECORD)
  return text === undefined ? undefined : records.parse(JSON.parse(text))
}

export function* brokenMachines(now: Snapshot, machines: readonly Machine[]): Generator<Broken> {
  const executing = new Map<string, string>()
  for (const machine of machines) {
    for (const runtime of machine.runtimes.values()) {
      const owner = ownerOf(runtime)
      if (owner === undefined || !executes(runtime)) continue
      const other = executing.get(owner.sandbox)
      if (other !== undefined) yield `${owner.sandbox} runs twice: as ${other} and as ${runtime.name} on ${machine.name}`
      executing.set(owner.sandbox, `${runtime.name} on ${machine.name}`)
    }
    yield* brokenMachine(now, machine)
  }
}

function* brokenMachine(now: Snapshot, machine: Machine): Generator<Broken> {
  if (machine.runtimes.size === 0) return
  const record = hostRecordOf(machine)
  const host = now.hosts.find(({ id }) => id === record?.host_id)
  if (record === undefined || host === undefined) {
    yield `${machine.name} runs something and never registered`
    return
  }
  const runtimes = [...machine.runtimes.values()]
  if (host.epoch > record.epoch) {
    for (const runtime of runtimes) if (executes(runtime)) yield `${runtime.name} runs on ${machine.name}, whose epoch ${record.epoch} is over`
    return
  }
  const memoryMb = runtimes.reduce((sum, runtime) => sum + runtime.memoryMb, 0)
  if (memoryMb > host.memory_mb_reserved) yield `${machine.name} has runtimes of ${memoryMb} MB; ${host.memory_mb_reserved} MB are reserved there`
  for (const runtime of runtimes) {
    const owner = ownerOf(runtime)
    if (owner === undefined || runtime.state !== 'running') continue
    const assignment = live(now).find(({ sandbox, host: on }) => sandbox === owner.sandbox && on === host.id)
    if (assignment === undefined) yield `${runtime.name} runs on ${machine.name} for ${owner.sandbox}, which has no live assignment there`
  }
}

/** A release is the end of a runtime, not a wish. */
export function* brokenReleases(before: Snapshot, now: Snapshot, machines: readonly Machine[]): Generator<Broken> {
  const was = new Set(live(before).map(({ id }) => id))
  for (const assignment of now.assignments) {
    if (assignment.released_by === null || !was.has(assignment.id)) continue
    const machine = machines.find((one) => hostRecordOf(one)?.host_id === assignment.host)
    const host = now.hosts.find(({ id }) => id === assignment.host)
    if (assignment.released_by === 'fence' && (host === undefined || host.epoch <= assignment.epoch)) {
      yield `${assignment.sandbox} was released by a fence; its host still holds epoch ${assignment.epoch}`
    }
    for (const runtime of machine?.runtimes.values() ?? []) {
      const owner = ownerOf(runtime)
      if (owner?.sandbox !== assignment.sandbox || owner.generation > assignment.generation) continue
      if (assignment.released_by === 'ended' || executes(runtime))
        yield `${assignment.sandbox} was released (${assignment.released_by}) while ${runtime.name} is on ${machine?.name}`
    }
  }
}

/** guard: member.record. When a guest learns whose it is, a record on disk names it. */
export function brokenIdentity(machine: Machine, runtime: Runtime): Broken | undefined {
  const sandbox = runtime.identity?.sandbox ?? ''
  const text = machine.disk.files.get(`/simulated/host/sandboxes/${sandbox}.json`)
  const named = text === undefined ? undefined : sandboxRecords.parse(JSON.parse(text)).runtime?.name
  return named === runtime.name ? undefined : `${runtime.name} on ${machine.name} became ${sandbox}; no record on disk names it`
}
