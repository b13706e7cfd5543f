/** The warm pool, seen from outside: sentries that run without being a sandbox. */

import { until } from '../../tests/e2e/bounds.ts'
import type { Installation } from '../../tests/e2e/installation.ts'
import { allSentries } from '../../tests/e2e/sentries.ts'

const FILL_MS_EACH = 600
const FILL_MS_LEAST = 15_000

/** Waits until the pool holds its members and nothing else runs but so many sandboxes. @returns whether it came to that */
export async function poolIsFull(installation: Installation, members: number, sandboxes: number): Promise<boolean> {
  if (members === 0) return false
  try {
    await until(Math.max(FILL_MS_LEAST, members * FILL_MS_EACH), 'a full pool', () => allSentries(installation.home).length === members + sandboxes)
    return true
  } catch {
    return false
  }
}
