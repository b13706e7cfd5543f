/** What the processes of an installation use, as the kernel counts it. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findCgroupTree } from '@sandglass/host-agent/cgroups/cgroup-tree'
import { inventory } from '../../tests/failure/leftovers.ts'
import { livingRole, ROLES } from '../../tests/failure/roles.ts'

const NS_PER_US = 1_000
/** The unit of /proc/PID/stat on every Linux that this runs on, 100 a second. */
const NS_PER_TICK = 1e7
/** utime, stime, cutime and cstime among what follows a process's name. */
const CPU_FIELDS = [11, 12, 13, 14]

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

export type RolePids = { readonly role: string; readonly pids: readonly number[] }

/** Every process that serves no one sandbox and no member of a pool, by role; what no role's own process is is Postgres' or a command of a role's. */
export function roleProcesses(home: string): RolePids[] {
  const own = ([...ROLES, 'supervisor'] as const).map((role) => ({ role, pids: [livingRole(home, role)?.pid ?? []].flat() }))
  const named = new Set(own.flatMap(({ pids }) => pids))
  const others = processesOf(home).flatMap(({ pid, sandbox }) => (sandbox === null && !named.has(pid) ? [pid] : []))
  return [...own, { role: 'backends of postgres and others', pids: others }]
}

/** Memory of a process, what it shares divided among those that share it. MiB. */
export function pssMib(pid: number): number {
  return Number(/^Pss: +(\d+) kB$/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1_024
}

export const sumPssMib = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + pssMib(pid), 0)

/**
 * CPU time of a process and of its children that have ended, nanoseconds. The sum over a tree of processes never falls, whoever of them comes
 * and goes: a child's time passes to its parent.
 */
export function cpuNs(pid: number): number {
  const stat = read(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return CPU_FIELDS.reduce((sum, field) => sum + Number(fields[field] ?? 0), 0) * NS_PER_TICK
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
