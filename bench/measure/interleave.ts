/**
 * Interleaved sampling: A B A B, so that whatever else the machine does meets both sides alike. The first round only warms up.
 */

export type SampledSide = {
  /** Samples of this side in one round. */
  readonly each: number
  /** Takes one sample and keeps it, unless it is of the warm-up. */
  readonly sample: (keep: boolean) => Promise<void>
}

/** @throws the signal's reason */
export async function interleave(rounds: number, sides: readonly SampledSide[], signal: AbortSignal): Promise<void> {
  for (let round = 0; round <= rounds; round += 1) {
    for (const { each, sample } of sides) {
      for (let index = 0; index < (round === 0 ? 1 : each); index += 1) {
        signal.throwIfAborted()
        await sample(round > 0)
      }
    }
  }
}

/** Runs tasks with at most so many in flight; fails with the first failure, when all in flight have ended. */
export async function inFlight<T>(count: number, tasks: readonly (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = []
  const failures: unknown[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < tasks.length && failures.length === 0) {
      const index = next
      next += 1
      try {
        const task = tasks[index]
        if (task !== undefined) results[index] = await task()
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: count }, lane))
  if (failures.length > 0) throw failures[0]
  return results
}

/** Milliseconds that something took. */
export async function timed(action: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await action()
  return performance.now() - began
}
