/**
 * What a runtime uses, from the kernel's own counts.
 *
 * CPU and memory are its control group's. Disk is its main process's: version 1 charges no buffered write to a group, and the sentry does all
 * of a sandbox's reading and writing. Network is that process's namespace, where the sandbox's interfaces are.
 */
import { readFileSync } from 'node:fs'
import { type CgroupTree, controlFile } from './cgroup-tree.ts'

export type RuntimeUsage = {
  readonly cpu_ms: number
  readonly memory_bytes: number
  readonly memory_limit_bytes: number
  readonly disk_read_bytes: number
  readonly disk_written_bytes: number
  readonly network_received_bytes: number
  readonly network_sent_bytes: number
}

export const NO_USAGE: RuntimeUsage = {
  cpu_ms: 0,
  memory_bytes: 0,
  memory_limit_bytes: 0,
  disk_read_bytes: 0,
  disk_written_bytes: 0,
  network_received_bytes: 0,
  network_sent_bytes: 0,
}

const NS_PER_MS = 1_000_000
const US_PER_MS = 1_000
/** Fields of a line of /proc/PID/net/dev behind the name: bytes come first, and ninth. */
const SENT_FIELD = 8

/** Empty when it is not there any more, or this machine does not have it: a count that is not known is 0. */
function text(path: string | undefined): string {
  if (path === undefined) return ''
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** `name value` or `name: value` at the beginning of a line. */
function field(content: string, name: string): number {
  return Number(new RegExp(`^${name}:? (\\d+)$`, 'm').exec(content)?.[1] ?? 0)
}

const whole = (content: string): number => {
  const value = Number(content.trim())
  return Number.isSafeInteger(value) ? value : 0
}

function cpuMs(tree: CgroupTree, group: string): number {
  if (tree.version === 1) return Math.round(whole(text(controlFile(tree, group, 'cpuacct.usage'))) / NS_PER_MS)
  return Math.round(field(text(controlFile(tree, group, 'cpu.stat')), 'usage_usec') / US_PER_MS)
}

function memory(tree: CgroupTree, group: string): Pick<RuntimeUsage, 'memory_bytes' | 'memory_limit_bytes'> {
  const [current, limit, idle] =
    tree.version === 1 ? ['memory.usage_in_bytes', 'memory.limit_in_bytes', 'total_inactive_file'] : ['memory.current', 'memory.max', 'inactive_file']
  const droppable = field(text(controlFile(tree, group, 'memory.stat')), idle)
  return {
    memory_bytes: Math.max(0, whole(text(controlFile(tree, group, current))) - droppable),
    memory_limit_bytes: whole(text(controlFile(tree, group, limit))),
  }
}

function network(procfs: string, pid: number): Pick<RuntimeUsage, 'network_received_bytes' | 'network_sent_bytes'> {
  let received = 0
  let sent = 0
  for (const [, name, numbers = ''] of text(`${procfs}/${pid}/net/dev`).matchAll(/^\s*([^\s:|]+):(.*)$/gm)) {
    if (name === 'lo') continue
    const fields = numbers.trim().split(/\s+/).map(Number)
    received += fields[0] ?? 0
    sent += fields[SENT_FIELD] ?? 0
  }
  return { network_received_bytes: received, network_sent_bytes: sent }
}

/** @param pid of the runtime's main process; undefined when it has just died */
export function runtimeUsage(tree: CgroupTree, group: string, pid: number | undefined, procfs = '/proc'): RuntimeUsage {
  const io = pid === undefined ? '' : text(`${procfs}/${pid}/io`)
  return {
    cpu_ms: cpuMs(tree, group),
    ...memory(tree, group),
    disk_read_bytes: field(io, 'read_bytes'),
    disk_written_bytes: field(io, 'write_bytes'),
    ...(pid === undefined ? { network_received_bytes: 0, network_sent_bytes: 0 } : network(procfs, pid)),
  }
}
