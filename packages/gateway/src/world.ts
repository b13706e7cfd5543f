/** What the gateway takes from outside, so that its parts can be run with other clocks and other randomness. */
import { randomFillSync } from 'node:crypto'
import type { RandomBytes } from '@sandglass/contract'
import { noTracing, type Tracing } from '@sandglass/telemetry'
import type { Log } from './log.ts'
import { type GatewayMetrics, gatewayMetrics } from './metrics.ts'

export type World = {
  /** Monotonic milliseconds; only differences mean something. */
  readonly nowMs: () => number
  /** Calls back once; returns what cancels it. */
  readonly timer: (ms: number, callback: () => void) => () => void
  readonly random: RandomBytes
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly tracing: Tracing
}

export function systemWorld(log: Log, tracing: Tracing = noTracing): World {
  return {
    nowMs: () => performance.now(),
    timer: (ms, callback) => {
      const timer = setTimeout(callback, ms)
      return () => clearTimeout(timer)
    },
    random: pooledRandom(),
    log,
    metrics: gatewayMetrics(),
    tracing,
  }
}

const RANDOM_POOL_BYTES = 4_096

/** Every request takes some for its ids, and a call to the generator costs more than the bytes. Each byte is given out once. */
function pooledRandom(): RandomBytes {
  let pool = new Uint8Array(0)
  let used = 0
  return (size) => {
    if (size > pool.byteLength - used) {
      pool = randomFillSync(new Uint8Array(Math.max(RANDOM_POOL_BYTES, size)))
      used = 0
    }
    used += size
    return pool.subarray(used - size, used)
  }
}

/** Resolves after `ms`, or at once when the signal is aborted. */
export function pause(world: World, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve()
    const done = () => {
      cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const cancel = world.timer(ms, done)
    signal?.addEventListener('abort', done, { once: true })
  })
}
