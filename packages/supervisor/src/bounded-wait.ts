/** Polls until something holds, for a bounded time. */
import { setTimeout as delay } from 'node:timers/promises'

export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  options: { timeoutMs: number; everyMs: number; signal?: AbortSignal },
): Promise<boolean> {
  const deadline = performance.now() + options.timeoutMs
  for (;;) {
    if (await holds()) return true
    if (options.signal?.aborted === true || performance.now() >= deadline) return false
    await delay(options.everyMs)
  }
}
