/** Goes on with the release of earlier epochs where a registration was cut off. */
import { releaseFenced } from '../services/release-fenced.ts'
import type { Outcome } from './reconciler.ts'

export async function reconcileReleases(context: Parameters<typeof releaseFenced>[0]): Promise<Outcome> {
  const { released, mayBeMore } = await releaseFenced(context)
  return { actions: released, nextInMs: mayBeMore ? 0 : undefined }
}
