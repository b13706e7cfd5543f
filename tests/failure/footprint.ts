/** What the processes of an installation take of the machine, as the kernel counts it: memory (PSS), descriptors, threads. */
import { readdirSync, readFileSync } from 'node:fs'
import { sentriesOf } from '../e2e/sentries.ts'
import { livingRole, type Role } from './roles.ts'

export type Footprint = { readonly pid: number; readonly pssBytes: number; readonly descriptors: number; readonly threads: number }

/** The processes of ours that bytes of users pass through or that hold their state. Postgres is many processes that come and go. */
export const OUR_ROLES = ['control-plane', 'gateway', 'host-agent', 'supervisor'] as const satisfies readonly (Role | 'supervisor')[]
export type OurRole = (typeof OUR_ROLES)[number]

export function footprintOf(pid: number): Footprint {
  const pss = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1]
  return {
    pid,
    pssBytes: Number(pss) * 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: readdirSync(`/proc/${pid}/task`).length,
  }
}

/** @throws Error when a role does not live */
export function footprints(home: string): Record<OurRole, Footprint> {
  const of = (role: OurRole): Footprint => {
    const living = livingRole(home, role)
    if (living === undefined) throw new Error(`${role} does not live`)
    return footprintOf(living.pid)
  }
  return { 'control-plane': of('control-plane'), gateway: of('gateway'), 'host-agent': of('host-agent'), supervisor: of('supervisor') }
}

/** The one sentry of a sandbox. Its memory holds the sandbox's own, so only what surrounds it is of interest. */
export function sentryFootprint(home: string, sandboxId: string): Footprint {
  const [sentry] = sentriesOf(home, sandboxId)
  if (sentry === undefined) throw new Error(`no sentry of ${sandboxId} lives`)
  return footprintOf(sentry.pid)
}
