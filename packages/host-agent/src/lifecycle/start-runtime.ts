/**
 * The two ways to a runtime that is somebody's: a cold start boots one, a claim takes a booted pool member. The intent is on disk before the
 * first step of either. A step that fails ends the start; the caller takes down whatever exists by the one path that takes runtimes down.
 */
import type { RuntimeSpec } from '@sandglass/contract'
import type { RuntimeIntent } from '../domain/sandbox-record.ts'
import type { GuestChannel } from '../guest/guest-channel.ts'
import { type BootedRuntime, bootRuntime } from './boot-runtime.ts'
import { identifyRuntime } from './identify-runtime.ts'
import type { LifecycleWorld, RuntimeIdentity } from './lifecycle-world.ts'
import { type OnPhase, type Stopwatch, stopwatch } from './stopwatch.ts'

export type StartedRuntime = { readonly channel: GuestChannel; readonly seen: Pick<RuntimeIntent, 'guest_boot_id' | 'evidence' | 'timings_ms'> }

export type StartInput = {
  readonly runtime: RuntimeIdentity
  readonly spec: RuntimeSpec
  readonly onLost: () => void
  /** Phases before this one, for the report. */
  readonly before: Readonly<Record<string, number>>
  readonly onPhase?: OnPhase | undefined
}

/** @throws Error naming the step's failure; what was made stays for `stopRuntime` */
export async function startRuntime(world: LifecycleWorld, input: StartInput, signal: AbortSignal): Promise<StartedRuntime> {
  const { runtime, spec, onLost, before, onPhase } = input
  const now = (): number => world.clock.nowMs()
  const watch = stopwatch(now)
  const booted = await bootRuntime(world, { name: runtime.name, epoch: runtime.epoch, owner: runtime, spec, yields: false, onLost, onPhase }, signal)
  const rest = stopwatch(now, now(), onPhase)
  return identified(world, booted, { runtime, spec, watch: rest }, signal, () => ({ ...before, ...booted.laps, ...rest.laps, total: watch.total() }))
}

/** @param watch begun when the order was heard; its laps are the report's */
export async function claimRuntime(
  world: LifecycleWorld,
  member: BootedRuntime,
  { runtime, spec, onLost, watch }: Omit<StartInput, 'before' | 'onPhase'> & { readonly watch: Stopwatch },
  signal: AbortSignal,
): Promise<StartedRuntime> {
  member.giveTo(runtime, onLost)
  return identified(world, member, { runtime, spec, watch }, signal, () => ({ ...watch.laps, total: watch.total() }))
}

async function identified(
  world: LifecycleWorld,
  booted: BootedRuntime,
  { runtime, spec, watch }: Pick<StartInput, 'runtime' | 'spec'> & { readonly watch: Stopwatch },
  signal: AbortSignal,
  timings: () => Record<string, number>,
): Promise<StartedRuntime> {
  const { channel, evidence, guestBootId } = booted
  try {
    await identifyRuntime(world, booted, { spec, generation: runtime.generation, watch }, signal)
    return { channel, seen: { guest_boot_id: guestBootId, evidence, timings_ms: timings() } }
  } catch (error) {
    await channel.close()
    throw error
  }
}
