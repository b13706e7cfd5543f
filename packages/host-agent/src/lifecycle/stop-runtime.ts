/**
 * Takes down one runtime, dead or alive, known or found: every step looks at the machine, does nothing when its thing is gone, and can be
 * repeated after any crash. It resolves only when nothing is left (end.kill).
 */
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { Driver } from '../drivers/contract.ts'
import type { LifecycleWorld } from './lifecycle-world.ts'
import { removeDirectories } from './make-directories.ts'

/** @param drivers the runtime's own, or all when its origin is unknown @throws Error when something cannot be removed yet */
export async function stopRuntime(world: LifecycleWorld, name: RuntimeName, drivers: readonly Driver[]): Promise<void> {
  const { layout, faults } = world
  for (const driver of drivers) await driver.kill(name)
  faults.reach('stop.runtime')
  for (const driver of drivers) await driver.clean(name)
  faults.reach('stop.cgroup')
  if (drivers.some((driver) => driver.needs.network)) await world.network.remove(layout.netns(name))
  faults.reach('stop.network')
  await removeDirectories(layout.runtime(name))
  faults.reach('stop.directories')
}
