/** Compares the machine with the records and removes what belongs to nothing. */
import { planCensus } from '../domain/plan-census.ts'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { LifecycleWorld } from '../lifecycle/lifecycle-world.ts'
import { stopRuntime } from '../lifecycle/stop-runtime.ts'
import { type Log, reasonOf } from '../log.ts'
import { takeCensus } from './take-census.ts'

/** What should be on the machine. */
export type Residents = {
  desired(): ReadonlySet<RuntimeName>
  /** Those whose process must exist. */
  running(): ReadonlyMap<RuntimeName, { runtimeExited(): void }>
}

/** @returns how many leftovers were found */
export async function sweepLeftovers(residents: Residents, world: LifecycleWorld, log: Log): Promise<number> {
  // Found first, desired after: see planCensus.
  const found = takeCensus(world.layout, world.drivers)
  const running = residents.running()
  const plan = planCensus(found, residents.desired(), new Set(running.keys()))
  for (const name of plan.missing) running.get(name)?.runtimeExited()
  for (const { name, kinds } of plan.leftovers) {
    log.warn('census.leftover', { runtime: name, kinds: kinds.join(' ') })
    await stopRuntime(world, name, world.drivers).catch((error) => log.error('census.leftover_stays', { runtime: name, reason: reasonOf(error) }))
  }
  return plan.leftovers.length
}
