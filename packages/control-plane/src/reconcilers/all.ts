/** Every reconciler, with its period and what wakes it. */
import type { Context } from '../context.ts'
import type { ChangeFeed } from '../events/change-feed.ts'
import type { WakeTopic } from '../events/wake-bus.ts'
import type { KeyUsage } from '../services/key-usage.ts'
import { reconcileDrains } from './drain.ts'
import { collectEvents } from './event-gc.ts'
import { sealAndShow } from './event-sealer.ts'
import { HostLeaseSweeper } from './host-lease-sweeper.ts'
import { collectIdempotencyKeys } from './idempotency-gc.ts'
import { reconcileOutbox } from './outbox-relay.ts'
import { reconcilePlacement } from './placement.ts'
import { PoolPlanner } from './pool-planner.ts'
import { type Outcome, Reconciler } from './reconciler.ts'
import { reconcileReleases } from './release.ts'
import { reconcileStarts } from './start-convergence.ts'
import { Timeouts } from './timeouts.ts'

const MINUTE_MS = 60_000

/** Other replicas hear of several commits at once. */
const RELAY_GATHER_MS = 5

/** Claims of a burst are answered by few looks at pools, and none competes with the start that it follows. */
const POOL_GATHER_MS = 100

export class Reconcilers {
  readonly #all: readonly Reconciler[]
  readonly #relay: Reconciler
  readonly #off: (() => void)[] = []

  constructor(context: Context, keyUsage: KeyUsage, feed: ChangeFeed) {
    const { sweepMs, eventHoldMs, fencePollMs } = context.config.timing
    const inner = { ...context, db: context.db.for('reconcilers') }
    const make = (name: string, periodMs: number, work: () => Promise<Outcome>, topics: WakeTopic[] = [], gatherMs = 0): Reconciler => {
      const reconciler = new Reconciler({ name, periodMs, work, gatherMs, log: context.log, monotonicMs: context.world.monotonicMs })
      for (const topic of topics) this.#off.push(context.bus.on(topic, () => reconciler.wake()))
      return reconciler
    }
    const nothing = async (work: () => Promise<void>): Promise<Outcome> => {
      await work()
      return { actions: 0 }
    }
    const planner = new PoolPlanner(inner)
    const timeouts = new Timeouts(inner)
    const sweeper = new HostLeaseSweeper(inner)
    this.#relay = make('outbox-relay', sweepMs, () => reconcileOutbox(inner), [], RELAY_GATHER_MS)
    const sealer = make('event-sealer', sweepMs, () => sealAndShow(inner.db, feed, eventHoldMs))
    feed.wakeSealer = () => sealer.wake()
    this.#all = [
      make('placement', sweepMs, () => reconcilePlacement(inner), ['placement']),
      make('pool-planner', sweepMs, () => planner.reconcile(), ['pool', 'placement'], POOL_GATHER_MS),
      make('start-convergence', sweepMs, () => reconcileStarts(inner)),
      make('drain', sweepMs, () => reconcileDrains(inner), ['drain']),
      make('timeouts', sweepMs, () => timeouts.reconcile()),
      make('host-lease-sweeper', fencePollMs, () => sweeper.reconcile()),
      make('release', sweepMs, () => reconcileReleases(inner), ['release']),
      this.#relay,
      sealer,
      make('event-streams', sweepMs, () => nothing(() => feed.sweep())),
      make('operation-waiters', sweepMs, () => nothing(() => context.waiters.sweep())),
      make('template-scan', 2 * sweepMs, () => nothing(() => context.templates.run())),
      make('api-key-usage', MINUTE_MS, () => nothing(() => keyUsage.flush())),
      make('event-gc', 10 * MINUTE_MS, () => collectEvents(inner.db)),
      make('idempotency-gc', 10 * MINUTE_MS, () => collectIdempotencyKeys(inner.db)),
    ]
    this.#off.push(context.bus.onGap(() => this.#wakeAll()))
  }

  start(): void {
    for (const reconciler of this.#all) reconciler.start()
  }

  /** There is something in the outbox. */
  relay(): void {
    this.#relay.wake()
  }

  async stop(): Promise<void> {
    for (const off of this.#off) off()
    await Promise.all(this.#all.map((reconciler) => reconciler.stop()))
  }

  status() {
    return this.#all.map((reconciler) => reconciler.status())
  }

  #wakeAll(): void {
    for (const reconciler of this.#all) reconciler.wake()
  }
}
