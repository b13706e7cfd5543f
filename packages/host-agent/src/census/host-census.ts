/** The census of a running agent: taken again and again, and what it saw last for the metrics. */
import { LIMITS } from '@sandglass/contract'
import type { LifecycleWorld } from '../lifecycle/lifecycle-world.ts'
import { reasonOf } from '../log.ts'
import { fillReserve } from '../state/record-reserve.ts'
import type { Room } from '../storage/free-space.ts'
import { type Residents, sweepLeftovers } from './sweep-leftovers.ts'

export class HostCensus {
  readonly #residents: Residents
  readonly #world: LifecycleWorld
  readonly #room: Room
  #leftovers = 0
  #freeDiskMb = 0

  private constructor(residents: Residents, world: LifecycleWorld, room: Room) {
    this.#residents = residents
    this.#world = world
    this.#room = room
  }

  static async of(residents: Residents, world: LifecycleWorld, room: Room): Promise<HostCensus> {
    const census = new HostCensus(residents, world, room)
    await census.#lookAtDisk()
    return census
  }

  /** How many were found since the agent started. */
  get leftovers(): number {
    return this.#leftovers
  }

  get freeDiskMb(): number {
    return this.#freeDiskMb
  }

  /** @returns how many leftovers there were */
  async take(): Promise<number> {
    const count = await sweepLeftovers(this.#residents, this.#world, this.#world.log)
    this.#leftovers += count
    await this.#lookAtDisk()
    await fillReserve(this.#world.layout.root)
    return count
  }

  /** Runs until the signal fires, and rejects with its reason. */
  async repeat(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#world
    while (!signal.aborted) {
      await clock.wait(LIMITS.hostCensusPeriodMs, signal)
      await this.take().catch((error) => log.error('census.failed', { reason: reasonOf(error) }))
    }
  }

  async #lookAtDisk(): Promise<void> {
    this.#freeDiskMb = await this.#room.freeDiskMb(this.#world.layout.root)
  }
}
