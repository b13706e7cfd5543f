/** Releases what hosts held in epochs that are over: by a fence, or by a registration that was cut off before it had done so. */
import { releaseFenced } from '../services/release-fenced.ts'
import type { Outcome } from './reconciler.ts'

export async function reconcileReleases(context: Parameters<typeof releaseFenced>[0]): Promise<Outcome> {
  const { released, mayBeMore } = await releaseFenced(context)
  return { actions: released, nextInMs: mayBeMore ? 0 : undefined }
}
