/** Waits for a value with a bound. */
import { setTimeout as delay } from 'node:timers/promises'

const LOOK_MS = 10

export async function until<T>(what: string, look: () => T | undefined | Promise<T | undefined>, timeoutMs = 60_000): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await look()
    if (value !== undefined) return value
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`)
    await delay(LOOK_MS)
  }
}
