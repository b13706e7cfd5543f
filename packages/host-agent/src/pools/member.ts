/**
 * One runtime of a pool: booting, ready, picked by a claim, or being taken down. It is given to one sandbox, once; whatever else becomes of it,
 * it is taken down.
 */
import { LIMITS } from '@sandglass/contract'
import type { RuntimeName } from '../domain/runtime-name.ts'
import { type BootedRuntime, type BootInput, bootRuntime } from '../lifecycle/boot-runtime.ts'
import type { LifecycleWorld } from '../lifecycle/lifecycle-world.ts'
import { stopRuntime } from '../lifecycle/stop-runtime.ts'
import { warmUp } from '../lifecycle/warm-up.ts'
import { reasonOf } from '../log.ts'
import type { Slots } from '../reconcile/slots.ts'

export type MemberState = 'booting' | 'ready' | 'picked' | 'ending'

const RETRY_MS = 1_000

export type MemberBoot = Omit<BootInput, 'name' | 'owner' | 'yields'>

export type MemberWorld = { readonly lifecycle: LifecycleWorld; readonly ends: Slots }

export class Member {
  readonly name: RuntimeName
  readonly #world: MemberWorld
  readonly #boot = new AbortController()
  #state: MemberState = 'booting'
  #runtime: BootedRuntime | undefined
  #booting: Promise<void> | undefined

  constructor(world: MemberWorld, name: RuntimeName) {
    this.#world = world
    this.name = name
  }

  get state(): MemberState {
    return this.#state
  }

  /** @throws Error when it did not come up, or was ended meanwhile: then it must be taken down */
  boot(input: MemberBoot): Promise<void> {
    this.#booting = this.#bootOnce(input)
    return this.#booting
  }

  async #bootOnce(input: MemberBoot): Promise<void> {
    const { lifecycle } = this.#world
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(new Error(`the member was not ready within ${LIMITS.hostStartMs} ms`)), LIMITS.hostStartMs)
    const signal = AbortSignal.any([this.#boot.signal, late.signal])
    try {
      this.#runtime = await bootRuntime(lifecycle, { ...input, name: this.name, owner: null, yields: true }, signal)
      await this.#runtime.launched
      await warmUp(this.#runtime.channel, lifecycle.log.with({ runtime: this.name }), signal)
      signal.throwIfAborted()
      lifecycle.faults.reach('pool.booted')
      this.#state = 'ready'
    } finally {
      clearTimeout(timer)
    }
  }

  /** Undefined when it cannot be given to anybody. */
  pick(): BootedRuntime | undefined {
    if (this.#state !== 'ready' || this.#runtime?.channel.connected !== true) return undefined
    this.#state = 'picked'
    return this.#runtime
  }

  /** The claim did not take it: nobody was told of it. */
  putBack(): void {
    if (this.#state === 'picked') this.#state = 'ready'
  }

  /** Its process exists, or it is not known to be gone. */
  get alive(): boolean {
    return this.#state !== 'ready' || this.#runtime === undefined || this.#runtime.driver.find(this.name) !== undefined
  }

  /** It is nobody's any more. */
  markEnding(): void {
    this.#state = 'ending'
    this.#boot.abort(new Error('the member is not needed'))
  }

  /** Resolves when nothing of it is left. Never gives up before the signal. @throws the signal's reason */
  async takeDown(signal: AbortSignal): Promise<void> {
    const { lifecycle, ends } = this.#world
    // A boot that was stopped may still be making something.
    await this.#booting?.catch(() => {})
    const giveBack = await ends.take(signal)
    try {
      await this.#runtime?.channel.close()
      for (;;) {
        try {
          await stopRuntime(lifecycle, this.name, this.#runtime === undefined ? lifecycle.drivers : [this.#runtime.driver])
          return
        } catch (error) {
          lifecycle.log.error('pool.member_stays', { runtime: this.name, reason: reasonOf(error) })
          await lifecycle.clock.wait(RETRY_MS, signal)
        }
      }
    } finally {
      giveBack()
    }
  }
}
