/**
 * Ends every sandbox of the installation and removes what it has on the machine, without a control plane. Records stay as tombstones: their
 * marks still refuse what is on its way, and the next agent tells their ends.
 */
import { existsSync } from 'node:fs'
import { rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { namesIn, takeCensus } from './census/take-census.ts'
import { findCgroupTree, removeCgroup } from './cgroups/cgroup-tree.ts'
import type { Configuration } from './configuration.ts'
import { parseRuntimeName } from './domain/runtime-name.ts'
import { recordEnding, recordGone } from './domain/sandbox-record.ts'
import { stopRuntime } from './lifecycle/stop-runtime.ts'
import { type AgentWorld, type GuestAgentSource, machineOf, wardenPlace } from './machine.ts'
import { runCommand } from './processes/run-command.ts'
import { lockInstance } from './state/instance-lock.ts'
import { removeReserve } from './state/record-reserve.ts'
import { sandboxRecords } from './state/sandbox-records.ts'
import { mountsBelow } from './storage/mount-table.ts'
import { closedGate } from './warden/warden.ts'
import { endWarden } from './warden/warden-process.ts'

const LOCK_PATIENCE_MS = 5_000
const PARENT_REMOVAL_MS = 5_000

/** Nothing is started, so its file may be missing. */
const noGuestAgent: GuestAgentSource = async () => ({
  version: 'none',
  linkTo: () => Promise.reject(new Error('nothing is started while everything is ended')),
})

/** @returns how many runtimes there were @throws Error when an agent is running, or something cannot be removed */
export async function destroyAll(configuration: Configuration, world: AgentWorld): Promise<number> {
  await using _lock = await lockInstance(configuration.installation, world.clock, LOCK_PATIENCE_MS)
  const { lifecycle, layout } = await machineOf(configuration, world, noGuestAgent, () => closedGate)
  const names = [...namesIn(takeCensus(layout, lifecycle.drivers))].flatMap((text) => parseRuntimeName(text)?.name ?? [])
  const records = sandboxRecords(layout.sandboxes)
  for (const record of (await records.load()).records) {
    if (record.phase !== 'gone')
      await records.write(recordEnding(record, { reason: 'recovered', detail: 'Every sandbox of the installation was ended on this host.' }))
  }
  await Promise.all(names.map((name) => stopRuntime(lifecycle, name, lifecycle.drivers)))
  for (const record of (await records.load()).records) if (record.phase === 'ending') await records.write(recordGone(record))
  await lifecycle.templates.unmountAll()
  for (const point of mountsBelow(layout.root)) await runCommand('umount', ['-l', point])
  await rm(layout.runscRoot, { recursive: true, force: true })
  const place = wardenPlace(configuration, layout)
  await endWarden(place, world.clock)
  await rm(place.run, { recursive: true, force: true })
  await rmdir(configuration.runDir).catch(() => {})
  for (const parent of [layout.cgroupParent, layout.canaryParent]) await removeCgroup(findCgroupTree(), parent, world.clock, PARENT_REMOVAL_MS)
  for (const directory of [layout.runtimes, layout.templates]) if (existsSync(directory)) await rmdir(directory).catch(() => {})
  await removeReserve(layout.root)
  await rm(join(layout.root, 'agent.json'), { force: true })
  return names.length
}
