/**
 * Bodies that a guest makes without waiting for anybody, as files and archives. A silence in one is the guest's, and it has a bound.
 *
 * Only the time counts in which something is asked for: a client that reads slowly, or not at all for a while, is none of the guest's
 * business.
 */
import { CodedError, LIMITS } from '@sandglass/contract'
import type { World } from '../world.ts'
import type { HostAnswer } from './host-answer.ts'

const stalled = () => new CodedError('client_timeout', `The sandbox sent nothing of its answer for ${LIMITS.downloadStallMs} ms.`)

/** As `HostAnswer.next`. @throws what `tooLate` makes when nothing comes within `waitMs`; the caller then cancels the answer */
export async function nextBefore(answer: HostAnswer, world: World, waitMs: number, tooLate: () => CodedError): Promise<readonly Uint8Array[] | undefined> {
  if (answer.hasMore) return answer.next()
  let cancel: () => void = () => undefined
  const silent = new Promise<never>((_, reject) => {
    cancel = world.timer(waitMs, () => reject(tooLate()))
  })
  try {
    return await Promise.race([answer.next(), silent])
  } finally {
    cancel()
  }
}

/** What comes next of a download. @throws CodedError `client_timeout` after LIMITS.downloadStallMs of silence, else as `HostAnswer.next` */
export function nextOfDownload(answer: HostAnswer, world: World): Promise<readonly Uint8Array[] | undefined> {
  return nextBefore(answer, world, LIMITS.downloadStallMs, stalled)
}

/** A download, chunk by chunk, read as fast as it is asked for. @throws as `nextOfDownload` */
export async function* downloadChunks(answer: HostAnswer, world: World): AsyncGenerator<Uint8Array> {
  try {
    for (let chunks = await nextOfDownload(answer, world); chunks !== undefined; chunks = await nextOfDownload(answer, world)) yield* chunks
  } finally {
    answer.cancel()
  }
}
