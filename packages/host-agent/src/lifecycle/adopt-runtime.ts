/** A runtime that outlived its agent: the same socket is listened on again, the limits are set again, and the guest dials by itself. */
import type { ExpectedGuest } from '../domain/judge-preamble.ts'
import type { RuntimeIntent } from '../domain/sandbox-record.ts'
import { GuestChannel } from '../guest/guest-channel.ts'
import type { LifecycleWorld, RuntimeIdentity } from './lifecycle-world.ts'

export async function adoptRuntime(world: LifecycleWorld, runtime: RuntimeIdentity, intent: RuntimeIntent, onLost: () => void): Promise<GuestChannel> {
  const expected: ExpectedGuest = { sandbox: runtime.sandbox, generation: runtime.generation, bootId: intent.guest_boot_id }
  const channel = await GuestChannel.listen({
    socket: world.layout.runtime(runtime.name).socket,
    epoch: runtime.epoch,
    expected: () => expected,
    log: world.log.with({ sandbox: runtime.sandbox, generation: runtime.generation }),
    onLost,
  })
  world.faults.reach('adopt.channel')
  try {
    await world.driver(intent.driver).limit({ name: runtime.name, vcpu: intent.vcpu })
    return channel
  } catch (error) {
    await channel.close()
    throw error
  }
}
