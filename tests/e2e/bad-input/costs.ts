/** What requests could cost, read before and after them: rows that the API shows, reservations, processes inside, runtimes on the machine. */
import assert from 'node:assert/strict'
import { Sandbox } from '@sandglass/sdk'
import type { Installation } from '../installation.ts'
import { servingSentries } from '../sentries.ts'

export type Costs = {
  readonly sandboxes: readonly string[]
  readonly keys: number
  /** What sandboxes hold of each host; pools follow demand in their own time. */
  readonly reserved: readonly string[]
  readonly processes: number
  readonly runtimes: readonly number[]
}

/** @param watched a sandbox whose processes are counted */
export async function costsOf(installation: Installation, watched?: Sandbox): Promise<Costs> {
  const client = installation.client()
  const sandboxes: string[] = []
  for await (const { resource } of Sandbox.list({ client, includeEnded: true })) sandboxes.push(`${resource.id} ${resource.generation} ${resource.desired}`)
  let keys = 0
  for await (const _ of client.apiKeys.list()) keys += 1
  const reserved: string[] = []
  for await (const { id, reserved: held, pool } of client.hosts.list())
    reserved.push(JSON.stringify([id, held.vcpu, held.memory_mb - pool.memory_mb, held.disk_gb - pool.disk_gb]))
  return {
    sandboxes: sandboxes.sort(),
    keys,
    reserved,
    processes: watched === undefined ? 0 : (await watched.processes()).length,
    runtimes: servingSentries(installation.home).map(({ pid }) => pid),
  }
}

export async function assertCostNothing(installation: Installation, before: Costs, watched?: Sandbox): Promise<void> {
  assert.deepEqual(await costsOf(installation, watched), before, 'requests that were refused cost nothing.')
}
