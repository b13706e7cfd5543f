/**
 * A runtime up to the moment at which its guest has dialled: the same for a sandbox that starts cold and for a pool member, which stays there
 * until a sandbox gets it. Each step leaves something that `stopRuntime` removes. The network namespace is made by other programs, so it is made
 * beside the steps that only write files; the launch needs them all.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { PoolSpec } from '@sandglass/contract'
import type { ExpectedGuest } from '../domain/judge-preamble.ts'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { Driver, Launch, LaunchSpec } from '../drivers/contract.ts'
import { type ChannelInput, GuestChannel } from '../guest/guest-channel.ts'
import { awaitGuest } from './await-guest.ts'
import type { LifecycleWorld } from './lifecycle-world.ts'
import { makeDirectories } from './make-directories.ts'
import { type OnPhase, type Stopwatch, stopwatch } from './stopwatch.ts'

export type RuntimeOwner = { readonly sandbox: string; readonly generation: number }

export type BootInput = {
  readonly name: RuntimeName
  readonly epoch: number
  /** Null for a pool member. */
  readonly owner: RuntimeOwner | null
  readonly spec: LaunchSpec & Pick<PoolSpec, 'driver' | 'template'>
  /** It is booted ahead of need, and yields to what runs. */
  readonly yields: boolean
  readonly onLost: () => void
  readonly onPhase?: OnPhase | undefined
}

export type BootedRuntime = {
  readonly name: RuntimeName
  readonly driver: Driver
  readonly channel: GuestChannel
  readonly guestBootId: string
  readonly evidence: Readonly<Record<string, string>>
  readonly defaultCwd: string
  /** Its launcher may still be at work when its guest has dialled. Rejects when the launch failed after all. */
  readonly launched: Promise<void>
  readonly laps: Readonly<Record<string, number>>
  /** From here on the channel speaks only to a guest that is its, and tells it of a loss. */
  giveTo(owner: RuntimeOwner, onLost: () => void): void
}

/** @throws Error naming the step's failure; what was made stays for `stopRuntime` */
export async function bootRuntime(world: LifecycleWorld, input: BootInput, signal: AbortSignal): Promise<BootedRuntime> {
  const { clock, faults } = world
  const { name, spec, owner } = input
  const driver = world.driver(spec.driver)
  const watch = stopwatch(() => clock.nowMs(), clock.nowMs(), input.onPhase)
  let expected: ExpectedGuest = { sandbox: owner?.sandbox ?? null, generation: owner?.generation ?? null, bootId: null }
  let onLost = input.onLost

  const talk = { expected: () => expected, onLost: () => onLost() }
  const [network, files] = await Promise.allSettled([makeNetwork(world, driver, name, signal), makeFiles(world, input, driver, talk, watch)])
  if (files.status === 'rejected') throw files.reason
  const { launch, channel } = files.value
  try {
    if (network.status === 'rejected') throw network.reason
    watch.lap('network')
    const launched = driver
      .launch(launch, signal, () => faults.reach('start.launching'))
      .then(() => {
        faults.reach('start.launched')
        watch.lap('launch')
      })
    const { preamble } = await awaitGuest({ channel, driver, name, launched }, clock, signal)
    expected = { ...expected, bootId: preamble.boot_id }
    faults.reach('start.guest')
    watch.lap('guest')
    return {
      name,
      driver,
      channel,
      guestBootId: preamble.boot_id,
      evidence: { ...driver.evidence(name), guest_agent: preamble.agent, guest_boot_id: preamble.boot_id },
      defaultCwd: launch.root !== null && existsSync(join(launch.root, 'workspace')) ? '/workspace' : '/',
      launched,
      laps: watch.laps,
      giveTo({ sandbox, generation }, told) {
        expected = { ...expected, sandbox, generation }
        onLost = told
      },
    }
  } catch (error) {
    await channel.close()
    throw error
  }
}

async function makeNetwork({ layout, network, faults }: LifecycleWorld, driver: Driver, name: RuntimeName, signal: AbortSignal): Promise<void> {
  if (driver.needs.network) await network.create(layout.netns(name), signal)
  faults.reach('start.network')
}

/** Directories, what the driver needs to launch, and the socket that the guest will dial. */
async function makeFiles(
  world: LifecycleWorld,
  { name, spec, yields, epoch, owner }: BootInput,
  driver: Driver,
  talk: Pick<ChannelInput, 'expected' | 'onLost'>,
  watch: Stopwatch,
): Promise<{ readonly launch: Launch; readonly channel: GuestChannel }> {
  const { layout, faults, templates, guestAgent, log } = world
  const paths = layout.runtime(name)
  await makeDirectories(paths, guestAgent)
  faults.reach('start.directories')
  const root = driver.needs.template ? await templates.mounted(spec.template.digest) : null
  watch.lap('directories')
  const launch: Launch = { name, paths, spec, root, yields }
  await driver.prepare(launch)
  faults.reach('start.bundle')
  const channel = await GuestChannel.listen({ ...talk, socket: paths.socket, epoch, log: log.with(owner === null ? { runtime: name } : { ...owner }) })
  watch.lap('bundle')
  return { launch, channel }
}
