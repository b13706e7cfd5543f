/** What the processes of an installation use, as the kernel counts it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findCgroupTree } from '@sandglass/host-agent/cgroups/cgroup-tree'
import { inventory } from '../../tests/failure/leftovers.ts'

const NS_PER_US = 1_000

export type InstallationProcess = { readonly pid: number; readonly sandbox: string | null }

/** Roles, runtimes and what they have started. */
export function processesOf(home: string): InstallationProcess[] {
  return inventory({ home })
    .filter(({ kind }) => kind === 'process')
    .map(({ what, sandbox }) => ({ pid: Number.parseInt(what, 10), sandbox }))
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // A process may end while it is looked at; it uses nothing then.
    return ''
  }
}

/** Memory of a process, what it shares divided among those that share it. MiB. */
export function pssMib(pid: number): number {
  return Number(/^Pss: +(\d+) kB$/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1_024
}

export const sumPssMib = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + pssMib(pid), 0)

/** CPU time of all threads of a process, nanoseconds. */
export function cpuNs(pid: number): number {
  const folder = `/proc/${pid}/task`
  try {
    return readdirSync(folder).reduce((sum, thread) => sum + Number(read(`${folder}/${thread}/schedstat`).split(' ')[0] ?? 0), 0)
  } catch {
    return 0
  }
}

/** CPU time of a control group with all below it, nanoseconds. */
export function cgroupCpuNs(group: string): number {
  for (const hierarchy of findCgroupTree().hierarchies) {
    const place = join(hierarchy, group)
    if (existsSync(join(place, 'cpuacct.usage'))) return Number(read(join(place, 'cpuacct.usage')))
    const usec = /^usage_usec (\d+)$/m.exec(read(join(place, 'cpu.stat')))?.[1]
    if (usec !== undefined) return Number(usec) * NS_PER_US
  }
  throw new Error(`no CPU accounting for ${group}`)
}
