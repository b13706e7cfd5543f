/** Lets what was just done come to rest, where the rest is what is measured. */
import { setTimeout as delay } from 'node:timers/promises'

export async function settle(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  await delay(ms, undefined, { signal })
}
