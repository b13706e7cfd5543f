/** Waiting on a value with a bound, for what has no event to wait on. */
const STEP_MS = 5
const BOUND_MS = 30_000

/** @returns the first value that is neither undefined, null nor false */
export async function until<T>(what: string, look: () => T | Promise<T>, boundMs = BOUND_MS): Promise<NonNullable<T>> {
  const deadlineMs = performance.now() + boundMs
  for (;;) {
    const value = await look()
    if (value !== undefined && value !== null && value !== false) return value
    if (performance.now() > deadlineMs) throw new Error(`waited ${boundMs} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, STEP_MS))
  }
}
