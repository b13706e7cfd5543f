/** Bounded waits: every wait of these tests is on a value and has an end. */
import { AssertionError } from 'node:assert'
import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 25

/** The value of a promise, or an assertion that names what did not come in time. The promise is left alone. */
export async function within<T>(limitMs: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AssertionError({ message: `${what} did not come within ${limitMs} ms.` })), limitMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Asks again and again until the answer is not undefined or false. */
export async function until<T>(limitMs: number, what: string, ask: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() > deadline) throw new AssertionError({ message: `${what}: still not so after ${limitMs} ms.` })
    await delay(POLL_MS)
  }
}

/** The value of a promise; a rejection becomes an assertion, for steps that must not fail. */
export async function must<T>(what: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    if (error instanceof AssertionError) throw error
    const failure = new AssertionError({ message: `${what} failed: ${error instanceof Error ? error.message : String(error)}` })
    failure.cause = error
    throw failure
  }
}
