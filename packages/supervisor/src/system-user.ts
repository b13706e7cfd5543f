/** The system users that the roles run as. They are made once, own nothing but the role's files, and cannot log in. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { CodedError } from '@sandglass/contract/errors'
import type { Owner } from './atomic-file.ts'
import { waitUntil } from './bounded-wait.ts'

const run = promisify(execFile)
const USERADD_MS = 10_000

export const SYSTEM_USERS = { database: 'sandglass-db', api: 'sandglass-api', gateway: 'sandglass-gateway' } as const
export type SystemUser = (typeof SYSTEM_USERS)[keyof typeof SYSTEM_USERS]

export function findUser(name: string): Owner | undefined {
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [user, , uid, gid] = line.split(':')
    if (user === name && uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

/** Two installations may start at once: whoever loses the race for the password file's lock looks again. */
export async function ensureUser(name: SystemUser): Promise<Owner> {
  let reason: unknown
  const made = await waitUntil(
    async () => {
      if (findUser(name) !== undefined) return true
      try {
        await run('useradd', ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent', '--shell', '/usr/sbin/nologin', name], {
          timeout: USERADD_MS,
        })
      } catch (error) {
        reason = error
      }
      return findUser(name) !== undefined
    },
    { timeoutMs: USERADD_MS, everyMs: 100 },
  )
  const user = findUser(name)
  if (!made || user === undefined)
    throw new CodedError('internal', `The system user ${name} could not be made. Type: useradd --system ${name}`, { cause: reason })
  return user
}
