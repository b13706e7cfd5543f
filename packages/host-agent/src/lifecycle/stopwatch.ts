/** Phases of a start, milliseconds to a tenth. */
export type Stopwatch = { lap(phase: string): void; readonly laps: Record<string, number>; total(): number }

/** @param began of the first phase */
export function stopwatch(now: () => number, began = now()): Stopwatch {
  const laps: Record<string, number> = {}
  let last = began
  return {
    laps,
    lap(phase) {
      const current = now()
      laps[phase] = tenths(current - last)
      last = current
    },
    total: () => tenths(now() - began),
  }
}

export const tenths = (ms: number): number => Math.round(ms * 10) / 10
