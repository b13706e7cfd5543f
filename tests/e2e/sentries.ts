/**
 * Runtimes on this machine as the kernel shows them, found without the product's help. A sandbox that came out of a pool is served by the member
 * that became it, under the member's name; the sandbox's record on the host tells which.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Sentry = { readonly pid: number; readonly argv: readonly string[] }

const RECORDED_MEMBER = /"name":"(pm[a-z2-7]{16})"/

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // A process or a record may go away while it is looked at.
    return ''
  }
}

const isLive = (pid: number): boolean => !/^\d+ \(.*\) [ZX]/s.test(read(`/proc/${pid}/stat`))

const names = ({ argv }: Sentry, word: string): boolean => argv.some((part) => part.includes(word))

/** Every live gVisor sentry of an installation, pool members that nobody has claimed among them. */
export function allSentries(home: string): Sentry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), argv: read(`/proc/${name}/cmdline`).split('\0') }))
    .filter((sentry) => sentry.argv[0] === 'runsc-sandbox' && names(sentry, home) && isLive(sentry.pid))
}

function memberOf(home: string, sandboxId: string): string | undefined {
  return RECORDED_MEMBER.exec(read(join(home, 'host/sandboxes', `${sandboxId}.json`)))?.[1]
}

/** Those that serve one sandbox. What they were is not known any more once it has ended: who waits for that keeps their pids. */
export function sentriesOf(home: string, sandboxId: string): Sentry[] {
  const member = memberOf(home, sandboxId)
  return allSentries(home).filter((sentry) => names(sentry, sandboxId) || (member !== undefined && names(sentry, member)))
}

export const isSentry = (home: string, pid: number): boolean => allSentries(home).some((sentry) => sentry.pid === pid)

/** Those that serve any sandbox. */
export function servingSentries(home: string): Sentry[] {
  const claimed = readdirSync(join(home, 'host/sandboxes')).flatMap((name) => memberOf(home, name.replace(/\.json$/, '')) ?? [])
  return allSentries(home).filter(
    (sentry) => !sentry.argv.some((part) => /(?<![a-z0-9])pm[a-z2-7]{16}/.test(part)) || claimed.some((member) => names(sentry, member)),
  )
}
