/**
 * The processes of an installation, found by the pid files of its supervisor and believed only when their start time agrees: a pid may have
 * been given to somebody else meanwhile.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { processStat } from './leftovers.ts'
import { until } from './persist.ts'

export const ROLES = ['control-plane', 'gateway', 'host-agent', 'postgres'] as const
export type Role = (typeof ROLES)[number]

export type Living = { readonly pid: number; readonly startTime: string }

/** The process that the pid file names, when it lives. */
export function livingRole(home: string, role: Role | 'supervisor'): Living | undefined {
  let text: string
  try {
    text = readFileSync(join(home, 'run', `${role}.pid`), 'utf8')
  } catch {
    return undefined
  }
  const [pid, startTime] = text.trim().split(/\s+/)
  const stat = processStat(Number(pid))
  if (stat === undefined || stat.state === 'Z' || stat.state === 'X' || stat.startTime !== startTime) return undefined
  return { pid: Number(pid), startTime }
}

/** @throws Error when it does not live now */
export function killRole(home: string, role: Role | 'supervisor'): Living {
  const living = livingRole(home, role)
  if (living === undefined) throw new Error(`${role} does not live, so it cannot be killed`)
  process.kill(living.pid, 'SIGKILL')
  return living
}

/** Waits for another process of the role than the one that was there before. */
export function replaced(home: string, role: Role | 'supervisor', before: Living, limitMs: number): Promise<Living> {
  return until(limitMs, `${role} living again`, () => {
    const now = livingRole(home, role)
    return now !== undefined && (now.pid !== before.pid || now.startTime !== before.startTime) ? now : undefined
  })
}
