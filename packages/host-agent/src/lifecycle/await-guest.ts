/**
 * Step: the guest dials, perhaps before the runtime's launcher has come to its end. A launch that fails ends the wait at once, and so does a runtime
 * that dies after it.
 */
import { LIMITS } from '@sandglass/contract'
import type { Clock } from '../clock.ts'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { Driver } from '../drivers/contract.ts'
import type { GuestChannel } from '../guest/guest-channel.ts'
import type { GuestSession } from '../guest/guest-session.ts'

const LOOK_MS = 250

export type ExpectedDial = {
  readonly channel: GuestChannel
  readonly driver: Driver
  readonly name: RuntimeName
  /** Rejects when there will be no guest. */
  readonly launched: Promise<void>
}

export async function awaitGuest({ channel, driver, name, launched }: ExpectedDial, clock: Clock, signal: AbortSignal): Promise<GuestSession> {
  const done = new AbortController()
  const died = async (): Promise<never> => {
    await launched
    for (;;) {
      await clock.wait(LOOK_MS, done.signal)
      if (driver.find(name) === undefined) throw new Error(driver.postMortem(name) ?? 'the runtime ended before its guest agent dialled')
    }
  }
  try {
    return await Promise.race([channel.waitForSession(LIMITS.guestConnectTimeoutMs, AbortSignal.any([signal, done.signal])), died()])
  } finally {
    done.abort()
  }
}
