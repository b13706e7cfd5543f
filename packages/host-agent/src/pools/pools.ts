/**
 * All pools of this host: what orders tell of them, what claims get from them, when members may boot, and what may be told of them.
 *
 * Nothing boots before this host has entered an epoch. Whatever changes leads to one look at everything; a look also comes by itself, so that a
 * wake-up that is lost costs time and nothing else.
 */
import { LIMITS, type PoolPosition, type PoolSpec } from '@sandglass/contract'
import type { Clock } from '../clock.ts'
import { bootsAllowed, filledPools } from '../domain/plan-pool.ts'
import { COMMAND_YOUNG_MS, refillHeldUntilMs, type Work, workAfter } from '../domain/refill-pause.ts'
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { ClaimedPool } from '../domain/sandbox-record.ts'
import { reasonOf } from '../log.ts'
import type { DueReports } from '../reconcile/due-reports.ts'
import type { Slots } from '../reconcile/slots.ts'
import { Member } from './member.ts'
import { type PickedMember, Pool, type PoolWorld } from './pool.ts'
import type { PoolPositions } from './pool-positions.ts'

const LOOK_MS = 500

export type PoolsWorld = Omit<PoolWorld, 'closing' | 'changed' | 'epoch'> & {
  readonly positions: PoolPositions
  readonly reports: DueReports
  readonly clock: Clock
  readonly starts: Slots
  /** Why this host can boot nothing of the kind now. */
  readonly bootRefusal: (spec: PoolSpec) => Promise<string | undefined>
}

type Settled = { readonly version: number; readonly resolve: (version: number) => void }

export class Pools {
  readonly #world: PoolsWorld
  readonly #poolWorld: PoolWorld
  readonly #pools = new Map<string, Pool>()
  /** An acknowledgement was asked for. */
  readonly #ordered = new Set<string>()
  readonly #waiting = new Map<string, Set<Settled>>()
  readonly #closing = new AbortController()
  /** Left by an earlier agent, and not taken down yet: nobody knows of which pool they were. */
  readonly #strays = new Set<Member>()
  #entered = false
  #looking = false
  #again = false
  #refusal: string | undefined
  #work: Work | undefined
  /** Open requests for commands, oldest first; those that are no longer young are forgotten. */
  readonly #commands = new Set<{ readonly beganMs: number }>()
  #isPaused = false

  constructor(world: PoolsWorld) {
    this.#world = world
    this.#poolWorld = { ...world, closing: this.#closing.signal, epoch: () => world.positions.epoch, changed: () => this.#look() }
    for (const { key } of world.positions.all()) this.#aim(key)
  }

  all(): readonly Pool[] {
    return [...this.#pools.values()]
  }

  /** Every runtime of a pool, booting, ready, picked or going. */
  names(): RuntimeName[] {
    return this.all().flatMap((pool) => pool.members.map(({ name }) => name))
  }

  /** Signed positions from records of sandboxes, which may be newer than the files here. */
  remember(claimed: readonly ClaimedPool[]): void {
    for (const { epoch, position } of claimed) this.#take(epoch, position, null)
  }

  /** A member that recovery could not take down: until it is gone nothing is told of any pool. */
  stray(name: RuntimeName): void {
    const member = new Member(this.#poolWorld, name)
    this.#strays.add(member)
    member.markEnding()
    member.takeDown(this.#closing.signal).then(
      () => {
        this.#strays.delete(member)
        this.#look()
      },
      () => {},
    )
  }

  /** A sandbox gets its first command; later ones are its own business. @returns to be called when that request is over */
  firstCommandBegins(): () => void {
    const command = { beganMs: this.#world.clock.nowMs() }
    this.#commands.add(command)
    this.noteWork()
    return () => {
      if (this.#commands.delete(command)) this.noteWork()
    }
  }

  /** A start or a command begins here, or is over: boots wait until that is quiet. */
  noteWork(): void {
    this.#work = workAfter(this.#work, this.#world.clock.nowMs())
    if (!this.#isPaused) void this.#lookAfterPause()
  }

  /** With an end order. */
  learn({ epoch, position }: ClaimedPool): void {
    if (this.#take(epoch, position, null)) this.#look()
  }

  /** Of a pool order: told when it is on disk and no more members are left than its target. @returns whether it is of this epoch */
  obey(epoch: number, position: PoolPosition, spec: PoolSpec): boolean {
    if (!this.#take(epoch, position, spec)) return false
    this.#ordered.add(position.key)
    this.#look()
    return true
  }

  /**
   * guard: pool.ticket. The position that a claim made holds from here on, and the claim gets a member of exactly this pool.
   * @returns undefined: start cold @throws the signal's reason
   */
  claim({ epoch, position }: ClaimedPool, spec: PoolSpec, signal: AbortSignal): Promise<PickedMember | undefined> {
    this.noteWork()
    const pool = this.#take(epoch, position, spec)
    const claim = pool === undefined ? Promise.resolve(undefined) : pool.claim(signal)
    this.#look()
    return claim
  }

  /**
   * guard: ended.pool. Resolves with the newest version on disk, as soon as it is not older than the claim and no more members are left than its
   * target: what the ended sandbox held can be given away then.
   */
  settled({ epoch, position }: ClaimedPool): Promise<number> {
    // What an earlier epoch held is released by that epoch's end.
    if (epoch !== this.#world.positions.epoch) return Promise.resolve(position.version)
    this.#take(epoch, position, null)
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(position.key) ?? new Set()
      waiting.add({ version: position.version, resolve })
      this.#waiting.set(position.key, waiting)
      this.#look()
    })
  }

  /** What was told of the pool is on disk here, so that a record need not hold it. */
  stored({ position }: ClaimedPool): Promise<void> {
    return this.#world.positions.flush(position.key)
  }

  /** This host holds the epoch: members may boot. */
  async enter(epoch: number): Promise<void> {
    const { positions } = this.#world
    if (epoch !== positions.epoch) {
      await positions.enter(epoch)
      this.#pools.clear()
      this.#ordered.clear()
      for (const waiting of this.#waiting.values()) for (const { version, resolve } of waiting) resolve(version)
      this.#waiting.clear()
    }
    this.#entered = true
    this.#look()
  }

  /** guard: register.empty. No member boots until an epoch is entered again. @throws Error when some do not end in time */
  async endAll(patience: AbortSignal): Promise<void> {
    this.#entered = false
    await Promise.all(this.all().map((pool) => pool.endAll(patience)))
    const left = this.all().reduce((sum, pool) => sum + pool.size, 0)
    if (left > 0) throw new Error(`${left} pool members do not end`)
  }

  /** Runs until the signal fires, and rejects with its reason. */
  async repeat(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#world.clock.wait(LOOK_MS, signal)
      this.#look()
      await Promise.all(this.all().map(({ key }) => this.#world.positions.flush(key)))
    }
  }

  /** Looks for members whose process is gone. */
  lookForDead(): void {
    for (const pool of this.all()) for (const member of pool.members) if (!member.alive) pool.lost(member)
  }

  /** Members belong to nobody, so they end with the agent. */
  async close(): Promise<void> {
    await this.endAll(AbortSignal.timeout(LIMITS.hostDestroyMs)).catch(() => {})
    this.#closing.abort(new Error('the host agent stops'))
    await this.#world.positions.close()
  }

  #take(epoch: number, position: PoolPosition, spec: PoolSpec | null): Pool | undefined {
    if (!this.#world.positions.take(epoch, position, spec)) return undefined
    return this.#aim(position.key)
  }

  #aim(key: string): Pool {
    const pool = this.#pools.get(key) ?? new Pool(this.#poolWorld, key)
    this.#pools.set(key, pool)
    const stored = this.#world.positions.find(key)
    if (stored !== undefined) pool.aim(stored, stored.spec)
    return pool
  }

  /** One look at a time; what comes meanwhile leads to another. */
  #look(): void {
    for (const pool of this.all()) pool.settle()
    if (this.#looking) {
      this.#again = true
      return
    }
    this.#looking = true
    this.#lookOnce()
      .catch((error) => this.#world.log.error('pool.look_failed', { reason: reasonOf(error) }))
      .finally(() => {
        this.#looking = false
        const again = this.#again && !this.#closing.signal.aborted
        this.#again = false
        if (again) this.#look()
      })
  }

  async #lookOnce(): Promise<void> {
    await this.#fill()
    await Promise.all(this.all().map((pool) => this.#tell(pool)))
  }

  /** Without it a pool would be looked at while refilling is held, and at hardly any other time. */
  async #lookAfterPause(): Promise<void> {
    const { clock } = this.#world
    this.#isPaused = true
    try {
      for (let leftMs = this.#heldMs; leftMs > 0; leftMs = this.#heldMs) await clock.wait(leftMs, this.#closing.signal)
      this.#look()
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#world.log.error('pool.pause_failed', { reason: reasonOf(error) })
    } finally {
      this.#isPaused = false
    }
  }

  /** Positive while pools are left as they are. */
  get #heldMs(): number {
    const { clock, starts } = this.#world
    const nowMs = clock.nowMs()
    for (const command of this.#commands) {
      if (nowMs - command.beganMs < COMMAND_YOUNG_MS) break
      this.#commands.delete(command)
    }
    if (starts.taken > 0 || this.#commands.size > 0) this.#work = workAfter(this.#work, nowMs, true)
    return refillHeldUntilMs(this.#work) - nowMs
  }

  async #fill(): Promise<void> {
    if (this.#heldMs > 0) return
    for (const pool of filledPools(this.all())) {
      if (!this.#entered || pool.spec === null || pool.lacking === 0 || this.#allowed(pool) === 0) continue
      const refusal = await this.#world.bootRefusal(pool.spec)
      if (refusal !== this.#refusal && refusal !== undefined) this.#world.log.warn('pool.not_filled', { pool: pool.key.slice(0, 12), reason: refusal })
      this.#refusal = refusal
      if (refusal !== undefined) continue
      while (this.#entered && pool.lacking > 0 && this.#allowed(pool) > 0) pool.boot()
    }
  }

  #allowed({ gently }: Pool): number {
    const pools = this.all()
    return bootsAllowed({
      members: pools.reduce((sum, pool) => sum + pool.size, 0),
      inFlight: pools.reduce((sum, pool) => sum + pool.count('booting'), 0),
      startsWaiting: this.#world.starts.waiting,
      gently,
    })
  }

  async #tell(pool: Pool): Promise<void> {
    const { positions, reports, lifecycle } = this.#world
    const { key } = pool
    const asked = this.#ordered.has(key) || (this.#waiting.get(key)?.size ?? 0) > 0
    // Whatever is not asked about is written when it is quiet: the records of sandboxes hold it until then.
    if (asked) await positions.flush(key)
    const stored = positions.find(key)
    if (!asked || stored === undefined || !positions.isDurable(key) || !pool.fits || this.#strays.size > 0) return
    if (this.#ordered.delete(key)) {
      lifecycle.faults.reach('pool.stored')
      reports.add({ type: 'pool', key, version: stored.version }, () => lifecycle.faults.reach('pool.reported'))
    }
    const waiting = this.#waiting.get(key)
    for (const settled of waiting ?? []) {
      if (settled.version > stored.version) continue
      waiting?.delete(settled)
      settled.resolve(stored.version)
    }
  }
}
