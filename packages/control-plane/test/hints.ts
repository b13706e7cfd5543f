/** What may become of hints: the real way, and the faults that a whole test file runs under when SANDGLASS_TEST_HINTS names one. */
import { DEFAULT_TIMING } from '../src/config.ts'
import type { World } from '../src/world.ts'

/** Late enough to come behind what the hint is about, a sweep included. */
const LATE_MS = 350

export const HINTS: Readonly<Record<'lost' | 'twice-and-late', World['hint']>> = {
  lost: () => undefined,
  // The first also overtakes: hints that arise one after another arrive in any order. A start that is handed over twice is an order that is sent twice, which
  // hosts take once, and tests count: it is only late.
  'twice-and-late': (deliver, what) => {
    setTimeout(deliver, Math.random() * LATE_MS)
    if (what === 'wake-up') setTimeout(deliver, LATE_MS + Math.random() * LATE_MS)
  },
}

/** @param sweepMs a test that has switched sweeps off is about hints, and gets them */
export function hintsOfRun(sweepMs: number): Partial<Pick<World, 'hint'>> {
  const named = process.env['SANDGLASS_TEST_HINTS']
  if (named === undefined || named === '' || sweepMs > DEFAULT_TIMING.sweepMs) return {}
  if (named !== 'lost' && named !== 'twice-and-late') throw new Error(`SANDGLASS_TEST_HINTS is lost or twice-and-late, not ${named}`)
  return { hint: HINTS[named] }
}
