/**
 * Measures that must not grow: looked at before and after a long time of the same work.
 *
 * A process settles first: caches fill, code is compiled, heaps find their size. So the work begins with a warm-up that does not count, and
 * what is compared is the state in quiet after it with the state in quiet after many times more.
 */
import { footprints, type OurRole, sentryFootprint } from './footprint.ts'
import { until } from './persist.ts'

const MIB = 1024 * 1024
const QUIET_LIMIT_MS = 20_000

export type Allowance = { readonly pssBytes: number; readonly descriptors: number; readonly threads: number }

/** Sockets of keep-alive connections and pooled database connections come and go by a few. */
const ALLOWED: Allowance = { pssBytes: 32 * MIB, descriptors: 8, threads: 2 }

export type Levels = Readonly<Record<string, { readonly pssBytes: number; readonly descriptors: number; readonly threads: number }>>

/** @param sandboxId whose sentry counts too; its memory is the sandbox's own */
export function levels(home: string, sandboxId?: string): Levels {
  const all: Record<OurRole | 'sentry', { pssBytes: number; descriptors: number; threads: number }> = {
    ...footprints(home),
    sentry: { pssBytes: 0, descriptors: 0, threads: 0 },
  }
  if (sandboxId !== undefined) {
    const { descriptors, threads } = sentryFootprint(home, sandboxId)
    all.sentry = { pssBytes: 0, descriptors, threads }
  }
  return all
}

/** One line for each measure that grew by more than it may. */
function growth(before: Levels, after: Levels, allowed: Allowance = ALLOWED): string[] {
  const lines: string[] = []
  for (const [name, now] of Object.entries(after)) {
    const was = before[name] ?? { pssBytes: 0, descriptors: 0, threads: 0 }
    for (const measure of ['pssBytes', 'descriptors', 'threads'] as const) {
      if (now[measure] > was[measure] + allowed[measure]) lines.push(`${measure} of ${name}: ${was[measure]} before, ${now[measure]} after`)
    }
  }
  return lines
}

/** Waits until nothing is above its allowance any more; what still is at the bound. */
export async function settledGrowth(
  before: Levels,
  look: () => Levels | Promise<Levels>,
  allowed: Allowance = ALLOWED,
  limitMs: number = QUIET_LIMIT_MS,
): Promise<string[]> {
  let lines: string[] = []
  await until(limitMs, 'the measures being back', async () => {
    lines = growth(before, await look(), allowed)
    return lines.length === 0 ? true : undefined
  }).catch(() => undefined)
  return lines
}
