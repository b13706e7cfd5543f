/**
 * Processes of this machine as /proc tells. A pid alone names nothing for long; with its start time it does.
 *
 * The first process of a machine may reap late, so a dead process can stay in the table for seconds: states Z and X count as dead.
 */
import { readdirSync, readFileSync } from 'node:fs'

export type ProcessIdentity = { readonly pid: number; readonly startTicks: string }
export type ListedProcess = { readonly pid: number; readonly argv: readonly string[] }

const STATE_FIELD = 0
const PARENT_FIELD = 1
const START_FIELD = 19

const GONE = new Set(['ENOENT', 'ESRCH', 'EACCES'])

/** Undefined when the process is gone. @throws Error when it cannot be told: want of descriptors must not look like a death */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && GONE.has(String(error.code))) return undefined
    throw error
  }
}

function statFields(pid: number): string[] | undefined {
  const stat = read(`/proc/${pid}/stat`)
  // The name stands in parentheses and may hold anything, also parentheses.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Undefined when there is no such process, or only its zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const fields = statFields(pid)
  const state = fields?.[STATE_FIELD]
  const startTicks = fields?.[START_FIELD]
  if (state === undefined || startTicks === undefined || state === 'Z' || state === 'X') return undefined
  return { pid, startTicks }
}

export function isAlive(process: ProcessIdentity): boolean {
  return identify(process.pid)?.startTicks === process.startTicks
}

export function argvOf(pid: number): string[] {
  const text = read(`/proc/${pid}/cmdline`)
  if (text === undefined || text === '') return []
  return text.replace(/\0$/, '').split('\0')
}

function pids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
}

/** Living processes whose arguments satisfy the test. Kernel threads and stubs without arguments never do. */
export function listProcesses(test: (argv: readonly string[]) => boolean): ListedProcess[] {
  return pids()
    .map((pid) => ({ pid, argv: argvOf(pid) }))
    .filter(({ pid, argv }) => argv.length > 0 && test(argv) && identify(pid) !== undefined)
}

/** All living descendants of the processes, as far as parents still tell. */
export function descendantsOf(roots: readonly number[]): number[] {
  const children = new Map<number, number[]>()
  for (const pid of pids()) {
    const parent = Number(statFields(pid)?.[PARENT_FIELD] ?? 0)
    children.set(parent, [...(children.get(parent) ?? []), pid])
  }
  const found: number[] = []
  const queue = [...roots]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    for (const child of children.get(next) ?? []) {
      found.push(child)
      queue.push(child)
    }
  }
  return found
}

/** True when the process existed to take the signal. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
