/** What the runtime uses that a gateway asks about. guard: conn.gen, as for every request to it. */
import type { SandboxUsage } from '@sandglass/contract/usage'
import type { LifecycleWorld } from '../lifecycle/lifecycle-world.ts'
import { type Asked, runningOf } from './route-to.ts'
import type { SandboxWorkers } from './sandbox-workers.ts'

/** @throws CodedError as `runningOf` */
export function usageOf(workers: SandboxWorkers, world: Pick<LifecycleWorld, 'driver' | 'clock'>, asked: Asked): SandboxUsage {
  const { runtime, name } = runningOf(workers, asked)
  return { at_ms: Math.round(world.clock.nowMs()), ...world.driver(runtime.driver).usage(name) }
}
