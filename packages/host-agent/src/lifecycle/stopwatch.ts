/** Phases of a start, milliseconds to a tenth. */
export type Stopwatch = { lap(phase: string): void; readonly laps: Record<string, number>; total(): number }

/** One phase that is over, on the clock of the stopwatch. */
export type Phase = { readonly name: string; readonly beganMs: number; readonly endedMs: number }
export type OnPhase = (phase: Phase) => void

/** @param began of the first phase @param onPhase told of each phase as it ends */
export function stopwatch(now: () => number, began = now(), onPhase: OnPhase = () => {}): Stopwatch {
  const laps: Record<string, number> = {}
  let last = began
  return {
    laps,
    lap(phase) {
      const current = now()
      laps[phase] = tenths(current - last)
      onPhase({ name: phase, beganMs: last, endedMs: current })
      last = current
    },
    total: () => tenths(now() - began),
  }
}

export const tenths = (ms: number): number => Math.round(ms * 10) / 10
