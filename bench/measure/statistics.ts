/** What is said of many samples. Pure. */

/**
 * Nearest rank: a value that was seen, never one between two.
 * @param share 0 < share ≤ 1
 * @throws RangeError without samples
 */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((left, right) => left - right)
  const found = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]
  if (found === undefined) throw new RangeError('no samples')
  return found
}

export const median = (samples: readonly number[]): number => percentile(samples, 0.5)

export const p99 = (samples: readonly number[]): number => percentile(samples, 0.99)
