/**
 * Notices runtimes that end by themselves. The runtime is nobody's child, so its process is looked at: cheap, and the same after a restart
 * of the agent. A lost channel leads to a look at once; this loop is what finds a runtime whose channel stays silent.
 */
import { LIMITS } from '@sandglass/contract'
import type { Clock } from '../clock.ts'
import type { LifecycleWorld } from '../lifecycle/lifecycle-world.ts'
import { reasonOf } from '../log.ts'
import type { Pools } from '../pools/pools.ts'
import type { SandboxWorkers } from './sandbox-workers.ts'

export async function watchExits(
  workers: SandboxWorkers,
  pools: Pick<Pools, 'lookForDead'>,
  world: LifecycleWorld,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for (const [name, worker] of workers.running()) {
        const driver = worker.record?.runtime?.driver
        if (driver !== undefined && world.driver(driver).find(name) === undefined) worker.runtimeExited()
      }
      pools.lookForDead()
    } catch (error) {
      world.log.error('exit_watch.blind', { reason: reasonOf(error) })
    }
    await clock.wait(LIMITS.hostExitPollMs, signal)
  }
}
