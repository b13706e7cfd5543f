/**
 * The seam of the crash tests: `run/crash-at.<role>`, readable by root alone, names the point at which the next start of that role kills
 * itself. It is taken away as it is read, so that it works once.
 */
import { readFileSync, rmSync, statSync } from 'node:fs'
import { paths } from './installation.ts'

export function takeCrashPoint(home: string, role: string): Readonly<Record<string, string>> {
  const path = paths.crashAt(home, role)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined || !stat.isFile() || stat.uid !== process.getuid?.() || (stat.mode & 0o077) !== 0) return {}
  const point = readFileSync(path, 'utf8').trim()
  rmSync(path, { force: true })
  return point === '' ? {} : { SANDGLASS_CRASH_AT: point }
}
