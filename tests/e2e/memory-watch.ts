/** Peaks of memory while something happens: of each of our processes on the machine by PSS, of the guest agent by what its own kernel says. */
import { setTimeout as delay } from 'node:timers/promises'
import { footprints, OUR_ROLES, type OurRole } from '../failure/footprint.ts'
import { ask } from './subject/inside.ts'
import type { Sandboxed } from './subject/sandboxed.ts'

const PERIOD_MS = 250
/** Asking the guest agent is an exec of its own. */
const GUEST_EVERY = 8
const PAGE_BYTES = 4_096

/** Bytes that each process took more than at the beginning, at its peak. */
export type Growth = Readonly<Record<OurRole | 'guest-agent', number>>

/** Resident bytes of PID 1, from inside. */
export async function guestAgentBytes(sandbox: Pick<Sandboxed, 'exec'>): Promise<number> {
  return Number((await ask(sandbox, { argv: ['cut', '-d', ' ', '-f', '2', '/proc/1/statm'] })).trim()) * PAGE_BYTES
}

export async function growthDuring(home: string, sandbox: Pick<Sandboxed, 'exec'>, action: () => Promise<void>): Promise<Growth> {
  const look = (): Record<OurRole, number> => {
    const all = footprints(home)
    return {
      'control-plane': all['control-plane'].pssBytes,
      gateway: all.gateway.pssBytes,
      'host-agent': all['host-agent'].pssBytes,
      supervisor: all.supervisor.pssBytes,
    }
  }
  const before = { ...look(), 'guest-agent': await guestAgentBytes(sandbox) }
  const peak = { ...before }
  let over = false
  const sampling = (async () => {
    for (let round = 0; !over; round += 1) {
      const now = look()
      for (const role of OUR_ROLES) peak[role] = Math.max(peak[role], now[role])
      // A guest whose disk is full or that is busy may refuse; the next look counts.
      if (round % GUEST_EVERY === 0) peak['guest-agent'] = Math.max(peak['guest-agent'], await guestAgentBytes(sandbox).catch(() => 0))
      await delay(PERIOD_MS)
    }
  })()
  try {
    await action()
  } finally {
    over = true
    await sampling
  }
  return {
    'control-plane': peak['control-plane'] - before['control-plane'],
    gateway: peak.gateway - before.gateway,
    'host-agent': peak['host-agent'] - before['host-agent'],
    supervisor: peak.supervisor - before.supervisor,
    'guest-agent': peak['guest-agent'] - before['guest-agent'],
  }
}
