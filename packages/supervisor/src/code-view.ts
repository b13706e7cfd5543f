/**
 * Where the roles see the repository. It may lie where their users cannot go, such as in root's home; then it is bound to a place below the
 * installation's home for as long as the installation runs, and nobody's directory has to be opened.
 *
 * A mount namespace per role would hide that mount, and was rejected: it would keep copies of the machine's other mounts, and with them a
 * template's loop device or a sandbox's network namespace alive after their end.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { CodedError } from '@sandglass/contract/errors'
import { userCan } from './privileges.ts'
import type { SystemUser } from './system-user.ts'

const MOUNT_MS = 10_000

export type CodeView = {
  readonly root: string
  readonly node: string
}

const run = (command: string, ...args: string[]) => spawnSync(command, args, { timeout: MOUNT_MS, encoding: 'utf8' })

/** In mountinfo a space in a path is \040. */
const isMounted = (place: string): boolean =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .some((line) => line.split(' ')[4]?.replaceAll('\\040', ' ') === place)

const isSame = (one: string, other: string): boolean => {
  const [a, b] = [statSync(one), statSync(other)]
  return a.dev === b.dev && a.ino === b.ino
}

export function openCodeView(user: SystemUser, code: string, node: string, place: string): CodeView {
  if (userCan(user, '-r', join(code, 'package.json')) && userCan(user, '-x', node)) return { root: code, node }
  mkdirSync(place, { recursive: true, mode: 0o755 })
  // A supervisor that was killed left its view; it serves again unless the repository is another one.
  if (isMounted(place) && !isSame(code, place)) closeCodeView(place)
  // Read-only, so that nobody who removes the home removes the repository.
  if (!isMounted(place)) {
    const mounted = run('mount', '--options', 'bind,ro', code, place)
    if (mounted.status !== 0) throw new CodedError('internal', `${code} could not be shown to ${user} at ${place}: ${mounted.stderr.trim()}`)
  }
  const inside = relative(code, node)
  return { root: place, node: inside.startsWith('..') ? node : join(place, inside) }
}

/** Lazily: what still runs from it keeps running, and nobody new finds it. */
export function closeCodeView(place: string): void {
  while (isMounted(place)) if (run('umount', '--lazy', place).status !== 0) return
  try {
    rmdirSync(place)
  } catch {
    // There was no view.
  }
}
