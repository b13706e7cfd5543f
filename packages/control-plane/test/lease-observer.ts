/** An observer of leases beside the control plane's own, on a clock that the test moves: what takes it 40 seconds takes the test none. */
import { noTracing } from '@sandglass/telemetry'
import type { LeaseSightings } from '../src/hosts/lease-sightings.ts'
import type { Database, Queryable } from '../src/store/database.ts'
import type { World } from '../src/world.ts'
import type { Rig } from './harness.ts'

const LOOK_EVERY_MS = 1_000

export class LeaseObserver {
  /** Of its monotonic clock, and of its wall clock. */
  nowMs = 5_000
  wallMs = Date.parse('2026-01-01T00:00:00Z')
  readonly leases: LeaseSightings
  readonly #sweeper: InstanceType<Rig['modules']['sweeper']['HostLeaseSweeper']>

  constructor(rig: Rig, { faults, db }: { faults?: World['faults']; db?: Queryable & Pick<Database, 'transaction'> } = {}) {
    const { config, modules } = rig
    const world: World = {
      ...modules.index.realWorld,
      monotonicMs: () => this.nowMs,
      wallMs: () => this.wallMs,
      tracing: noTracing,
      ...(faults === undefined ? {} : { faults }),
    }
    this.leases = new modules.sightings.LeaseSightings(world.monotonicMs)
    const context = {
      config,
      leases: this.leases,
      log: { warn: () => undefined },
      metrics: modules.catalogue.controlPlaneMetrics(),
      world,
      db: db ?? rig.db.for('reconcilers'),
    }
    this.#sweeper = new modules.sweeper.HostLeaseSweeper(context)
  }

  /** @returns how many hosts it fenced */
  async look(afterMs = 0): Promise<number> {
    this.nowMs += afterMs
    return (await this.#sweeper.reconcile()).actions
  }

  /** Looks once a second for so long, and at the end of it. @returns how many hosts it fenced */
  async watch(forMs: number): Promise<number> {
    let fenced = 0
    let leftMs = forMs
    for (; leftMs > LOOK_EVERY_MS; leftMs -= LOOK_EVERY_MS) fenced += await this.look(LOOK_EVERY_MS)
    return fenced + (await this.look(leftMs))
  }
}
