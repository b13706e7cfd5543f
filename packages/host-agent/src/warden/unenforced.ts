/**
 * In the place of a warden where none can be: an agent that is not root has no freezer, and offers nothing but the fake driver, which isolates nothing
 * either. The deadline is kept, and what asks for it is refused as on any host, but nothing stops by itself.
 */
import type { Clock } from '../clock.ts'
import { openGate, type Warden } from './warden.ts'

const NS_PER_MS = 1_000_000

export function unenforced(clock: Clock, renewalMs: number): Warden {
  let untilMs = Number.NEGATIVE_INFINITY
  const leftMs = (): number => untilMs - clock.nowMs()
  return {
    ...openGate,
    alive: true,
    get frozen() {
      return leftMs() <= 0
    },
    leftMs,
    moment: async () => BigInt(Math.floor(clock.nowMs() * NS_PER_MS)),
    async renewed(sent) {
      if (sent !== undefined) untilMs = Math.max(untilMs, Number(sent) / NS_PER_MS + renewalMs)
    },
    watch: (signal) => new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true }))),
    close: () => undefined,
  }
}
