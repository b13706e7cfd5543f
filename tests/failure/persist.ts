/**
 * What a well-behaved client does about a crash: it repeats a call that got no answer, or one that the product called retryable, until a bound.
 *
 * `internal` is retryable by the registry, but a crashed neighbour is no internal error: whoever sees one during these tests notes it as a fault.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { NoAnswer, Refusal } from './api.ts'

const PAUSE_MS = 60

export type Persistence = {
  readonly limitMs: number
  readonly what: string
  /** Told of each `internal` that was met on the way. */
  readonly onInternal?: (message: string) => void
}

function mayRepeat(error: unknown): boolean {
  if (error instanceof NoAnswer) return true
  return error instanceof Refusal && error.problem.retryable
}

/** @throws the last error when it must not be repeated, or when the bound is reached */
export async function persist<T>(how: Persistence, call: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + how.limitMs
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (error instanceof Refusal && error.problem.code === 'internal') how.onInternal?.(error.message)
      if (!mayRepeat(error)) throw error
      if (performance.now() > deadline) throw new Error(`${how.what}: no success within ${how.limitMs} ms`, { cause: error })
    }
    await delay(PAUSE_MS)
  }
}

/** Asks again and again until the answer is not undefined. @throws Error naming `what` and the last thing seen */
export async function until<T>(limitMs: number, what: string, ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    if (performance.now() > deadline) throw new Error(`${what}: still not so after ${limitMs} ms`)
    await delay(PAUSE_MS)
  }
}
