/**
 * The warm pool, as the host agent's own metrics tell it. A sentry that runs is no member yet: it counts when its guest has answered and it is
 * warm, and only the agent knows that. A row of warm starts begins with a whole pool on a host that does nothing else, or gives no number.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Installation } from '../../tests/e2e/installation.ts'

/** Where the agent tells them; given to an installation so that a restarted agent is found at the same place. */
export const METRICS_PORT = 'SANDGLASS_HOST_HEALTH_PORT'

const FILL_MS_EACH = 900
const FILL_MS_LEAST = 20_000
/** A look costs the agent a millisecond or two, and what is waited for wants the CPU. */
const LOOK_EVERY_MS = 100
const ANSWER_MS = 2_000
const UNSETTLED = ['booting', 'picked', 'ending'] as const
const ALIVE = ['launching', 'running', 'ending'] as const

export type PoolState = {
  readonly target: number
  readonly ready: number
  /** Members that are coming or going. */
  readonly unsettled: number
  /** Sandboxes that are not gone. */
  readonly sandboxes: number
}

export class PoolNotFull extends Error {
  override readonly name = 'PoolNotFull'
}

/** Of the text at /metrics. Undefined when a value is not told: no answer is no full pool. Pure. */
export function poolState(text: string): PoolState | undefined {
  const value = (series: string): number => {
    const line = text.split('\n').find((one) => one.startsWith(`${series} `))
    return line === undefined ? Number.NaN : Number(line.slice(series.length + 1))
  }
  const sum = (name: string, label: string, values: readonly string[]): number => values.reduce((total, one) => total + value(`${name}{${label}="${one}"}`), 0)
  const state = {
    target: value('sandglass_host_pool_target_members'),
    ready: value('sandglass_host_pool_members{state="ready"}'),
    unsettled: sum('sandglass_host_pool_members', 'state', UNSETTLED),
    sandboxes: sum('sandglass_host_sandboxes', 'phase', ALIVE),
  }
  return Object.values(state).every(Number.isFinite) ? state : undefined
}

/** Neither fewer members than the row names, nor more, nor anything that takes CPU from what is measured. Pure. */
export const isFull = ({ target, ready, unsettled, sandboxes }: PoolState, members: number): boolean =>
  target === members && ready === members && unsettled === 0 && sandboxes === 0

async function told({ env }: Installation): Promise<PoolState | undefined> {
  try {
    const answer = await fetch(`http://127.0.0.1:${env[METRICS_PORT]}/metrics`, { signal: AbortSignal.timeout(ANSWER_MS) })
    return poolState(await answer.text())
  } catch {
    // The agent may be starting again.
    return undefined
  }
}

/** @throws PoolNotFull when it does not come to that in time, and the signal's reason */
export async function fullPool(
  installation: Installation,
  members: number,
  signal: AbortSignal,
  limitMs: number = FILL_MS_LEAST + members * FILL_MS_EACH,
): Promise<void> {
  const deadline = performance.now() + limitMs
  for (;;) {
    signal.throwIfAborted()
    const state = await told(installation)
    if (state !== undefined && isFull(state, members)) return
    if (performance.now() > deadline) {
      const seen = state === undefined ? 'nothing of it' : `${state.ready} ready of ${state.target}, ${state.unsettled} unsettled, ${state.sandboxes} sandboxes`
      throw new PoolNotFull(`no pool of ${members} within ${limitMs} ms: the host agent tells ${seen}`)
    }
    await delay(LOOK_EVERY_MS, undefined, { signal })
  }
}
