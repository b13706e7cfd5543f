/**
 * Processes of the sandboxes of a host. gVisor's are in network namespaces of their own, so the host's does not hold them; its control groups hold all of
 * them, also what is still on its way and what stands frozen.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** @param groups text of /proc/PID/cgroup @param installation what the host agent marks its own with */
export function isInGroupsOf(groups: string, installation: string): boolean {
  const own = `sandglass-${installation}`
  return groups.split('\n').some((line) => {
    const path = line.split(':').slice(2).join(':')
    return path.split('/').some((part) => part === own || part.startsWith(`${own}-`))
  })
}

export function runtimesOf(installation: string): number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    try {
      return isInGroupsOf(readFileSync(`/proc/${entry}/cgroup`, 'utf8'), installation) ? [Number(entry)] : []
    } catch {
      // It has ended.
      return []
    }
  })
}
