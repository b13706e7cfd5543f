/**
 * Control groups of this machine, version 1, version 2, or version 1 with an empty version 2 beside it.
 *
 * The runtime makes its own leaf in every hierarchy; this side finds, reads, adjusts, kills and removes them, also when the runtime is dead.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../clock.ts'
import { killUntilGone } from '../processes/kill-until-gone.ts'
import { identify } from '../processes/process-table.ts'
import { listMounts } from '../storage/mount-table.ts'

const RETRY_MS = 10
const CPU_PERIOD_US = 100_000

export type CgroupTree = {
  readonly version: 1 | 2
  /** Mount points of all hierarchies. */
  readonly hierarchies: readonly string[]
}

/** @throws Error when the machine has no control groups */
export function findCgroupTree(): CgroupTree {
  const mounts = listMounts().filter((mount) => mount.type === 'cgroup' || mount.type === 'cgroup2')
  if (mounts.length === 0) throw new Error('no cgroup hierarchy is mounted')
  const version = mounts.some((mount) => mount.type === 'cgroup' && mount.options.split(',').includes('memory')) ? 1 : 2
  return { version, hierarchies: mounts.map((mount) => mount.point) }
}

/** Where version 2 is mounted, which alone can freeze what is below a group; it may have no controllers. */
export const unifiedHierarchy = (): string | undefined => listMounts().find((mount) => mount.type === 'cgroup2')?.point

const places = (tree: CgroupTree, path: string): string[] => tree.hierarchies.map((hierarchy) => join(hierarchy, path)).filter((place) => existsSync(place))

/** The file of a controller in the group, or undefined when the machine does not have it. */
export function controlFile(tree: CgroupTree, path: string, name: string): string | undefined {
  return places(tree, path)
    .map((place) => join(place, name))
    .find((file) => existsSync(file))
}

/** Names of the children of a group in any hierarchy. */
export function listCgroups(tree: CgroupTree, parent: string): Set<string> {
  const names = new Set<string>()
  for (const place of places(tree, parent)) {
    for (const entry of readdirSync(place, { withFileTypes: true })) if (entry.isDirectory()) names.add(entry.name)
  }
  return names
}

/** Living processes of a group. */
export function cgroupPids(tree: CgroupTree, path: string): number[] {
  const found = new Set<number>()
  for (const place of places(tree, path)) {
    try {
      for (const line of readFileSync(join(place, 'cgroup.procs'), 'utf8').split('\n')) if (line !== '') found.add(Number(line))
    } catch {
      // The group went away between the look and the read.
    }
  }
  return [...found].filter((pid) => identify(pid) !== undefined)
}

export async function killCgroup(tree: CgroupTree, path: string, clock: Clock, timeoutMs: number): Promise<void> {
  await killUntilGone(() => cgroupPids(tree, path), clock, timeoutMs)
}

/** Removes an empty group from every hierarchy; idempotent. The kernel may hold it for some milliseconds after its last process died. */
export async function removeCgroup(tree: CgroupTree, path: string, clock: Clock, timeoutMs: number): Promise<void> {
  const deadline = clock.nowMs() + timeoutMs
  for (;;) {
    const left: string[] = []
    for (const place of places(tree, path)) {
      try {
        for (const entry of readdirSync(place, { withFileTypes: true })) if (entry.isDirectory()) await rmdir(join(place, entry.name))
        await rmdir(place)
      } catch {
        if (existsSync(place)) left.push(place)
      }
    }
    if (left.length === 0) return
    if (clock.nowMs() > deadline) throw new Error(`cgroups cannot be removed: ${left.join(' ')}`)
    await clock.wait(RETRY_MS)
  }
}

const SHARES_PER_VCPU = 1_024
const SHARES_MIN = 2
const SHARES_MAX = 262_144
const WEIGHT_MAX = 10_000

/** How much of busy CPUs a group gets, against others. */
export const cpuShares = (vcpu: number): number => Math.min(SHARES_MAX, Math.max(SHARES_MIN, Math.round(vcpu * SHARES_PER_VCPU)))

/** Version 2 counts otherwise; runtimes translate in the same way. */
const weightOf = (shares: number): number => 1 + Math.floor(((shares - SHARES_MIN) * (WEIGHT_MAX - 1)) / (SHARES_MAX - SHARES_MIN))

/** Share and quota; takes effect at once, also on a running sandbox. */
export function limitCpu(tree: CgroupTree, path: string, vcpu: number): void {
  const quotaUs = Math.max(1_000, Math.round(vcpu * CPU_PERIOD_US))
  const file = controlFile(tree, path, tree.version === 1 ? 'cpu.cfs_quota_us' : 'cpu.max')
  if (file === undefined) throw new Error(`no CPU controller for ${path}`)
  writeFileSync(file, tree.version === 1 ? `${quotaUs}` : `${quotaUs} ${CPU_PERIOD_US}`)
  const shares = cpuShares(vcpu)
  writeFileSync(join(dirname(file), tree.version === 1 ? 'cpu.shares' : 'cpu.weight'), `${tree.version === 1 ? shares : weightOf(shares)}`)
}

/** How many processes of the group the kernel has killed for want of memory. */
export function memoryKills(tree: CgroupTree, path: string): number {
  const file = controlFile(tree, path, tree.version === 1 ? 'memory.oom_control' : 'memory.events')
  if (file === undefined) return 0
  try {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}
