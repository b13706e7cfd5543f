/**
 * The members of one pool, and the claims that wait for one.
 *
 * Level-triggered: `settle` may be called at any time, looks at what there is and at the target, and starts what brings the two together. What
 * it starts calls it again when it is over.
 */
import type { PoolPosition, PoolSpec } from '@sandglass/contract'
import { decideClaim, membersOf, type PoolView, planPool, refillsGently } from '../domain/plan-pool.ts'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { BootedRuntime } from '../lifecycle/boot-runtime.ts'
import { type Log, reasonOf } from '../log.ts'
import { Member, type MemberWorld } from './member.ts'
import { PoolCounters } from './pool-counters.ts'

const BACKOFF_FIRST_MS = 1_000
const BACKOFF_MAX_MS = 60_000
/** A claim lowers the target before the member is picked; tickets may come out of order. So long nobody's member is left for the next one. */
const CLAIM_GRACE_MS = 250
/** So long after a claim others are expected. */
const CLAIMS_GO_ON_MS = 1_000

export type PoolWorld = MemberWorld & {
  readonly log: Log
  readonly epoch: () => number
  readonly newName: () => RuntimeName
  /** Fires when the agent stops. */
  readonly closing: AbortSignal
  /** A member came up, was taken down, or died: this host may have room for others. */
  readonly changed: () => void
}

/** A member that one claim has picked. Exactly one of the three follows. */
export type PickedMember = {
  readonly runtime: BootedRuntime
  /** The pick is on disk: it is the sandbox's now, and its record's to take down. */
  taken(): void
  /** It was told nothing and no record names it. */
  putBack(): void
  /** It may be named in a record: it can be given to nobody. */
  spoil(): void
}

type Claim = { readonly since: number; waited: boolean; readonly answer: (member: PickedMember | undefined) => void }
type Burst = { readonly since: number; readonly boots: number; readonly failures: number }

export class Pool {
  readonly key: string
  readonly counters = new PoolCounters()
  readonly #world: PoolWorld
  readonly #log: Log
  readonly #members = new Map<RuntimeName, Member>()
  readonly #claims = new Set<Claim>()
  #target = 0
  #spec: PoolSpec | null = null
  #failures = 0
  #bootNotBefore = 0
  #endReadyNotBefore = 0
  #claimedAt = Number.NEGATIVE_INFINITY
  #burst: Burst | undefined

  constructor(world: PoolWorld, key: string) {
    this.#world = world
    this.key = key
    this.#log = world.log.with({ pool: key.slice(0, 12) })
  }

  get target(): number {
    return this.#target
  }

  get spec(): PoolSpec | null {
    return this.#spec
  }

  get members(): readonly Member[] {
    return [...this.#members.values()]
  }

  /** Members beside those that a claim has picked. */
  get size(): number {
    return membersOf(this.#view())
  }

  /** guard: pool.ackn. Also those that are being taken down still take up room. */
  get fits(): boolean {
    return this.size <= this.#target
  }

  count(state: Member['state']): number {
    let count = 0
    for (const member of this.#members.values()) if (member.state === state) count += 1
    return count
  }

  aim({ target }: Pick<PoolPosition, 'target'>, spec: PoolSpec | null): void {
    this.#target = target
    this.#spec = spec
  }

  /** Undefined: start cold. @throws the signal's reason */
  claim(signal: AbortSignal): Promise<PickedMember | undefined> {
    this.#claimedAt = this.#now()
    this.#endReadyNotBefore = this.#claimedAt + CLAIM_GRACE_MS
    return new Promise((resolve, reject) => {
      const claim: Claim = {
        since: this.#now(),
        waited: false,
        answer: (member) => {
          signal.removeEventListener('abort', onAbort)
          this.#claims.delete(claim)
          resolve(member)
        },
      }
      const onAbort = (): void => {
        this.#claims.delete(claim)
        this.#world.changed()
        reject(signal.reason)
      }
      if (signal.aborted) return reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      this.#claims.add(claim)
      this.#serve()
      claim.waited = true
    })
  }

  /** How many more it would boot now. */
  get lacking(): number {
    if (this.#spec === null || this.#now() < this.#bootNotBefore) return 0
    return planPool(this.#view()).boot
  }

  /** One boot at a time will do. */
  get gently(): boolean {
    return refillsGently(this.#view(), this.#now() < this.#claimedAt + CLAIMS_GO_ON_MS)
  }

  /** Serves claims, and takes down what is too much. */
  settle(): void {
    this.#serve()
    for (const name of planPool(this.#view()).end) {
      const member = this.#members.get(name)
      if (member === undefined || (member.state === 'ready' && this.#now() < this.#endReadyNotBefore)) continue
      this.#end(member)
    }
    this.#tellBurst()
  }

  boot(): void {
    const spec = this.#spec
    if (spec === null) return
    const member = new Member(this.#world, this.#world.newName())
    this.#members.set(member.name, member)
    const began = this.#now()
    this.#burst ??= { since: began, boots: this.counters.boots, failures: this.counters.bootFailures }
    const input = { epoch: this.#world.epoch(), spec: { ...spec, hostname: member.name, env: {} }, onLost: () => this.lost(member) }
    member.boot(input).then(
      () => {
        this.counters.boots += 1
        this.counters.bootSeconds += (this.#now() - began) / 1_000
        this.#failures = 0
        this.#world.changed()
      },
      (error) => {
        if (member.state !== 'ending') this.#bootFailed(member, error)
      },
    )
  }

  /** It has died, or nobody can speak to it. */
  lost(member: Member): void {
    if (member.state === 'ready') this.#end(member)
  }

  /** Resolves when no member is left, or the time is over. */
  async endAll(patience: AbortSignal): Promise<void> {
    this.#target = 0
    this.#endReadyNotBefore = 0
    for (const member of this.members) if (member.state !== 'ending' && member.state !== 'picked') this.#end(member)
    while (this.size > 0 && !patience.aborted) await this.#world.lifecycle.clock.wait(10, patience).catch(() => {})
  }

  #bootFailed(member: Member, error: unknown): void {
    const retryMs = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** this.#failures)
    this.#failures += 1
    this.counters.bootFailures += 1
    this.#bootNotBefore = this.#now() + retryMs
    this.#log.warn('pool.boot_failed', { runtime: member.name, reason: reasonOf(error), retry_ms: retryMs })
    this.#end(member)
  }

  /** Oldest claim first. */
  #serve(): void {
    let ahead = 0
    for (const claim of [...this.#claims]) {
      const decision = decideClaim(this.#view(), ahead)
      if (decision.kind === 'wait') {
        ahead += 1
        continue
      }
      if (decision.kind === 'cold') {
        this.counters.misses += 1
        claim.answer(undefined)
        continue
      }
      const member = this.#members.get(decision.name)
      const picked = member === undefined ? undefined : this.#pick(member)
      // It has just been lost: look again.
      if (picked === undefined) {
        this.#serve()
        return
      }
      if (claim.waited) this.counters.waits += 1
      else this.counters.hits += 1
      claim.answer(picked)
    }
  }

  #pick(member: Member): PickedMember | undefined {
    const runtime = member.pick()
    if (runtime === undefined) {
      this.#end(member)
      return undefined
    }
    let open = true
    const once = (act: () => void) => (): void => {
      if (!open) return
      open = false
      act()
      this.#world.changed()
    }
    return {
      runtime,
      taken: once(() => this.#members.delete(member.name)),
      putBack: once(() => member.putBack()),
      spoil: once(() => this.#end(member)),
    }
  }

  #end(member: Member): void {
    member.markEnding()
    member.takeDown(this.#world.closing).then(
      () => {
        this.#members.delete(member.name)
        this.#world.changed()
      },
      // The agent stops; the next one takes down what no record names.
      () => {},
    )
  }

  #tellBurst(): void {
    const burst = this.#burst
    if (burst === undefined || this.count('booting') > 0 || this.lacking > 0) return
    this.#burst = undefined
    const { boots, bootFailures } = this.counters
    this.#log.info('pool.filled', {
      members: this.count('ready'),
      target: this.#target,
      booted: boots - burst.boots,
      failed: bootFailures - burst.failures,
      ms: Math.round(this.#now() - burst.since),
    })
  }

  /** Asked for many times in each claim, of up to LIMITS.poolMembers: one walk, nothing copied. */
  #view(): PoolView {
    const ready: RuntimeName[] = []
    const booting: RuntimeName[] = []
    let ending = 0
    for (const { state, name } of this.#members.values()) {
      if (state === 'ready') ready.push(name)
      else if (state === 'booting') booting.push(name)
      else if (state === 'ending') ending += 1
    }
    return { target: this.#target, ready, booting, ending, waiting: this.#claims.size }
  }

  #now(): number {
    return this.#world.lifecycle.clock.nowMs()
  }
}
