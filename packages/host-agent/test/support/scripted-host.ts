/**
 * A host for tests of one worker: its disk, its driver and its time are scripts, and everything that a worker does to them is written down in the
 * order in which it happened.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type HostReport, LIMITS } from '@sandglass/contract'
import { recordSpans } from '@sandglass/testkit'
import { NO_USAGE } from '../../src/cgroups/runtime-usage.ts'
import type { Clock } from '../../src/clock.ts'
import type { Driver } from '../../src/drivers/contract.ts'
import { noFaults } from '../../src/faults/crash-point.ts'
import type { LifecycleWorld } from '../../src/lifecycle/lifecycle-world.ts'
import { silentLog } from '../../src/log.ts'
import { hostAgentMetrics } from '../../src/metrics/catalogue.ts'
import type { PickedMember } from '../../src/pools/pool.ts'
import { DueReports } from '../../src/reconcile/due-reports.ts'
import { Slots } from '../../src/reconcile/slots.ts'
import type { WorkerWorld } from '../../src/reconcile/worker-world.ts'
import { layoutOf } from '../../src/state/layout.ts'
import { openGate } from '../../src/warden/warden.ts'
import { position, spec } from '../domain/builders.ts'

export class ScriptedHost {
  /** What happened, oldest first. */
  readonly happened: string[] = []
  /** Thrown once by the step of that name. */
  readonly failures = new Set<string>()
  readonly starts = new Slots(1)
  /** What a claim gets from the pool. */
  claimed: PickedMember | undefined | Promise<PickedMember | undefined>
  /** When a pool has come down to a claim's target. */
  settled: Promise<number> | undefined
  lastSeq = position.lastSeq
  readonly recorded = recordSpans()
  /** The runtime's process is found. */
  alive = true
  readonly clock: Clock = {
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    async wait(_, signal) {
      await nextTurn()
      signal?.throwIfAborted()
    },
  }
  readonly world: WorkerWorld
  readonly lifecycle: LifecycleWorld

  constructor() {
    const driver: Driver = {
      name: 'fake',
      needs: { network: true, template: false, identity: false },
      probe: () => Promise.reject(new Error('not asked here')),
      prepare: () => Promise.reject(new Error('nothing is started here')),
      launch: () => Promise.reject(new Error('nothing is started here')),
      find: () => (this.alive ? { pid: 1, startTicks: '1' } : undefined),
      limit: async () => {},
      evidence: () => ({}),
      usage: () => NO_USAGE,
      postMortem: () => null,
      kill: () => this.#step('kill'),
      clean: () => this.#step('clean'),
      traces: () => ({ process: new Set(), cgroup: new Set(), runtime_state: new Set() }),
    }
    this.lifecycle = {
      layout: layoutOf('/nonexistent/sandglass-test', 'scripted'),
      clock: this.clock,
      log: silentLog,
      faults: noFaults,
      network: { create: () => Promise.reject(new Error('nothing is started here')), remove: () => this.#step('network') },
      templates: { list: () => [], mounted: () => Promise.reject(new Error('no template')), refresh: async () => {}, unmountAll: async () => {} },
      guestAgent: { version: 'none', linkTo: () => Promise.reject(new Error('nothing is started here')) },
      gate: openGate,
      driver: () => driver,
      drivers: [driver],
    }
    const offer = { hasLease: true, provedDrivers: new Set(['fake']), templateDigests: new Set([spec.template.digest]), capacity: spec.resources }
    const reports = new DueReports()
    reports.onDue(() => {
      const batch = reports.batch()
      for (const item of batch.items) this.happened.push(toldBy(item))
      batch.settle(batch.items.map(() => 'accepted'))
    })
    this.world = {
      lifecycle: this.lifecycle,
      records: {
        write: (record) => this.#step(`write ${record.phase} ${record.high}${record.settled ? ' settled' : ''}`),
        forget: () => this.#step('forget'),
        load: async () => ({ records: [], damaged: [] }),
      },
      reports,
      starts: this.starts,
      ends: new Slots(LIMITS.hostEndsInFlight),
      clock: this.clock,
      log: silentLog,
      metrics: hostAgentMetrics(),
      tracing: this.recorded.tracing,
      position: () => ({ ...position, lastSeq: this.lastSeq }),
      pools: {
        claim: async () => this.claimed,
        noteWork: () => {},
        settled: ({ position: { version } }) => this.settled ?? Promise.resolve(version),
        stored: async () => {},
        remember: () => {},
        stray: () => {},
      },
      localOffer: () => offer,
      // There is no room: what matters is how far a start comes.
      localState: async () => ({ ...offer, sandboxes: 0, freeDiskMb: 0, freeMemoryMb: 0 }),
    }
  }

  /** A step takes some turns, so that whatever does not wait for it comes before its end. */
  async #step(name: string): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await nextTurn()
    if (this.failures.delete(name)) {
      this.happened.push(`${name} fails`)
      throw new Error(`${name} was told to fail`)
    }
    this.happened.push(name)
  }
}

function toldBy(report: HostReport): string {
  if (report.type === 'pool') return `pool ${report.version}`
  return `${report.type} ${report.type === 'ended' ? `${report.upto} ${report.reason}${report.pool_version === null ? '' : ` pool ${report.pool_version}`}` : report.generation}`
}
