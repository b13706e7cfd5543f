/**
 * Which process a pid means. A pid alone is not an identity: it is used again. The start time (clock ticks since boot, field 22 of
 * /proc/PID/stat) makes it one until the next boot, and the environment says whose process it is.
 */
import { readFileSync } from 'node:fs'

export type ProcessIdentity = { readonly pid: number; readonly startTime: string }

function statOf(pid: number): { state: string; startTime: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses that may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state, startTime] = [fields[0], fields[19]]
    return state === undefined || startTime === undefined ? undefined : { state, startTime }
  } catch {
    return undefined
  }
}

/** A process that has ended but was not waited for yet counts as gone. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const stat = statOf(pid)
  return stat === undefined || stat.state === 'Z' || stat.state === 'X' ? undefined : { pid, startTime: stat.startTime }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identityOf(identity.pid)?.startTime === identity.startTime
}

/** So often, so many milliseconds apart, is one looked at that shows no environment. */
const LOOKS = 100
const LOOK_EVERY_MS = 1

/** Whether the process was started for the installation in that home. A process whose environment cannot be read was not. */
export function belongsToHome(pid: number, home: string): boolean {
  try {
    return environmentOf(pid).split('\0').includes(`SANDGLASS_HOME=${home}`)
  } catch {
    return false
  }
}

/** A process that is about to replace its program by another has none for a moment. */
function environmentOf(pid: number): string {
  for (let look = 0; look < LOOKS; look += 1) {
    const text = readFileSync(`/proc/${pid}/environ`, 'utf8')
    if (text !== '' || identityOf(pid) === undefined) return text
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_EVERY_MS)
  }
  return ''
}

/** @returns whether there was such a process to signal */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false
  try {
    return process.kill(identity.pid, signal)
  } catch {
    return false
  }
}
