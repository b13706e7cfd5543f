/** The last steps of any start: a booted runtime learns whose it is, and gets its limits. */
import { hostname } from 'node:os'
import type { RuntimeSpec } from '@sandglass/contract'
import type { BootedRuntime } from './boot-runtime.ts'
import { giveIdentity, identityOf } from './give-identity.ts'
import type { LifecycleWorld } from './lifecycle-world.ts'
import type { Stopwatch } from './stopwatch.ts'

export type IdentifyInput = { readonly spec: RuntimeSpec; readonly generation: number; readonly watch: Stopwatch }

/** @throws Error naming the step's failure; the runtime must be taken down: it may know whose it is */
export async function identifyRuntime(
  world: Pick<LifecycleWorld, 'faults'>,
  booted: BootedRuntime,
  { spec, generation, watch }: IdentifyInput,
  signal: AbortSignal,
): Promise<void> {
  const { driver, channel, defaultCwd, name, launched } = booted
  const identified = giveIdentity(channel.session(), identityOf({ spec, generation, defaultCwd, needs: driver.needs, hostname: hostname() }), signal)
  await Promise.all([identified, launched])
  world.faults.reach('start.identity')
  watch.lap('identity')
  await driver.limit({ name, vcpu: spec.resources.vcpu })
  world.faults.reach('start.limits')
  watch.lap('limits')
  signal.throwIfAborted()
}
