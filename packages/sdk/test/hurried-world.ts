/** The real network with a clock in a hurry: timers fire at once, and what they were asked to wait is remembered and counts as passed. */
import { realWorld, type World } from '../src/world.ts'

export type HurriedWorld = World & { readonly waits: number[] }

/** @param keepBelowMs timers at or above this are real: deadlines must not fire at once */
export function hurriedWorld(keepBelowMs = 5_000): HurriedWorld {
  const waits: number[] = []
  let skipped = 0
  return {
    ...realWorld,
    waits,
    random: () => 0.5,
    now: () => performance.now() + skipped,
    timer(ms, callback) {
      if (ms >= keepBelowMs) return realWorld.timer(ms, callback)
      const handle = setImmediate(() => {
        waits.push(ms)
        skipped += ms
        callback()
      })
      return () => clearImmediate(handle)
    },
  }
}
