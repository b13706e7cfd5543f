/**
 * How a role's process is started: as its user, without new privileges, and dying with the supervisor. Sandboxes are no children of a role
 * and live on.
 */
import { spawnSync } from 'node:child_process'
import { CodedError } from '@sandglass/contract/errors'
import type { SystemUser } from './system-user.ts'

const TEST_MS = 5_000

const asUser = (user: SystemUser | undefined): string[] =>
  user === undefined ? [] : [`--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all']

export function userCan(user: SystemUser, test: '-r' | '-x', path: string): boolean {
  return spawnSync('setpriv', [...asUser(user), 'test', test, path], { timeout: TEST_MS, stdio: 'ignore' }).status === 0
}

/** @throws CodedError `invalid_request` naming the directory that shuts the role out */
export function requireReach(user: SystemUser, home: string): void {
  if (!userCan(user, '-x', home)) {
    throw new CodedError(
      'invalid_request',
      `The system user ${user} cannot enter ${home}. Type: chmod o+x on the directories above it, or choose another SANDGLASS_HOME.`,
    )
  }
}

/** The command that becomes the given one. @param deathSignal what the process gets when who started it is gone; `none` lets it live */
export function privilegedCommand(
  command: readonly string[],
  options: { user: SystemUser | undefined; deathSignal: 'KILL' | 'INT' | 'none' },
): { command: string; args: string[] } {
  const dies = options.deathSignal === 'none' ? [] : [`--pdeathsig=${options.deathSignal}`]
  return { command: 'setpriv', args: [...dies, ...asUser(options.user), '--', ...command] }
}
