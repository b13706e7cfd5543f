/** `run/<role>.pid`: pid and start time. A file whose process is gone, or is another's by now, means nothing. */
import { readFileSync, rmSync } from 'node:fs'
import { writeFileAtomic } from './atomic-file.ts'
import { paths } from './installation.ts'
import { belongsToHome, identityOf, isAlive, type ProcessIdentity } from './process-identity.ts'

export function writePidFile(home: string, role: string, pid: number): void {
  const identity = identityOf(pid)
  if (identity !== undefined) writeFileAtomic(paths.pid(home, role), `${identity.pid} ${identity.startTime}\n`, 0o644)
}

export function removePidFile(home: string, role: string): void {
  rmSync(paths.pid(home, role), { force: true })
}

/** @returns the live process of this role and this home, if there is one */
export function readPidFile(home: string, role: string): ProcessIdentity | undefined {
  let text: string
  try {
    text = readFileSync(paths.pid(home, role), 'utf8')
  } catch {
    return undefined
  }
  const match = /^(\d{1,10}) (\d{1,20})\n$/.exec(text)
  if (match?.[1] === undefined || match[2] === undefined) return undefined
  const identity = { pid: Number(match[1]), startTime: match[2] }
  return isAlive(identity) && belongsToHome(identity.pid, home) ? identity : undefined
}
