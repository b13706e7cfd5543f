/**
 * Everything that a host says to its control plane and hears from it: register, then renew, watch and report side by side until the epoch
 * is lost or the agent stops. An outage of the control plane ends nothing here: each loop tries again, ever more slowly up to a bound, and the warden
 * freezes what runs when it lasts for too long. Only a refusal that tells of a later epoch ends anything.
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { CodedError, LIMITS, type RegisteredHost, type RegisterHost } from '@sandglass/contract'
import type { Clock } from '../clock.ts'
import type { Faults } from '../faults/crash-point.ts'
import { type Log, reasonOf } from '../log.ts'
import type { HostAgentMetrics } from '../metrics/catalogue.ts'
import type { Pools } from '../pools/pools.ts'
import type { DueReports } from '../reconcile/due-reports.ts'
import type { SandboxWorkers } from '../reconcile/sandbox-workers.ts'
import type { Warden } from '../warden/warden.ts'
import { backoff } from './backoff.ts'
import type { ControlClient } from './control-client.ts'
import type { HostLease } from './host-lease.ts'
import { takeOrder } from './take-orders.ts'

const RENEW_RETRY_MS = 1_000

export type LinkWorld = {
  readonly client: ControlClient
  readonly lease: HostLease
  readonly warden: Pick<Warden, 'moment' | 'renewed'>
  readonly workers: SandboxWorkers
  readonly pools: Pick<Pools, 'learn' | 'obey' | 'enter'>
  readonly reports: DueReports
  readonly clock: Clock
  readonly chance: () => number
  readonly log: Log
  readonly metrics: HostAgentMetrics
  readonly faults: Faults
  /** What the host says of itself, at this moment. */
  describe(): Omit<RegisterHost, 'host_id' | 'boot_id' | 'expected_epoch'>
  /** Ends everything that runs here (register.empty). */
  endEverything(): Promise<void>
}

/** A renewal was refused: a later epoch of this host is the living one, and everything here is of an earlier one. */
class EpochLost extends Error {
  override readonly name = 'EpochLost'
}

export class HostLink {
  readonly #world: LinkWorld
  #joined = false
  /** The last renewal was answered. */
  #renewed = false
  #wakeReports: () => void = () => {}

  constructor(world: LinkWorld) {
    this.#world = world
    world.reports.onDue(() => this.#wakeReports())
  }

  /** Holds an epoch and may take orders. */
  get joined(): boolean {
    return this.#joined
  }

  get connected(): boolean {
    return this.#joined && this.#renewed
  }

  /** Runs until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const registered = await this.#register(signal)
        await this.#serve(registered, signal)
      } catch (error) {
        this.#joined = false
        if (signal.aborted) return
        this.#world.log.error('host.session_ended', { epoch: this.#world.lease.record.epoch, reason: reasonOf(error) })
        if (!(error instanceof EpochLost)) await this.#world.clock.wait(RENEW_RETRY_MS, signal)
      }
    }
  }

  async #register(signal: AbortSignal): Promise<RegisteredHost> {
    const { client, lease, warden, pools, clock, chance, log, faults } = this.#world
    const pause = backoff(clock, chance)
    for (;;) {
      try {
        // guard: register.empty. With a new epoch nothing of the old one may run.
        if (lease.mustAskAnew) await this.#world.endEverything()
        // guard: register.floor. On disk before it is asked for.
        const expected = await lease.ask()
        faults.reach('host.asking')
        const { host_id, boot_id } = lease.record
        // guard: renew.sent. A registration is a renewal too.
        const sent = await warden.moment()
        const answer = await client.register({ ...this.#world.describe(), host_id, boot_id, expected_epoch: expected }, signal)
        await lease.registered(answer)
        await warden.renewed(sent)
        await pools.enter(answer.epoch)
        faults.reach('host.registered')
        log.info('host.registered', { host: host_id, epoch: answer.epoch, seq: answer.seq })
        return answer
      } catch (error) {
        signal.throwIfAborted()
        const told = toldEpoch(error)
        log.warn('host.register_failed', { reason: reasonOf(error), code: error instanceof CodedError ? error.code : null, told_epoch: told ?? null })
        await lease.refused(told).catch((cause) => log.error('host.floor_unwritten', { reason: reasonOf(cause) }))
        await pause.wait(signal)
      }
    }
  }

  /** Resolves or rejects when any of the three loops does; the other two are ended with it. */
  async #serve(registered: RegisteredHost, outer: AbortSignal): Promise<void> {
    const inner = new AbortController()
    const signal = AbortSignal.any([outer, inner.signal])
    this.#joined = true
    this.#renewed = true
    const keys = new Map(registered.ticket_keys.map((key) => [key.id, createPublicKey(key.public_key_pem)]))
    const loops = [this.#renew(registered.renew_period_ms, signal), this.#watch(keys, signal), this.#report(signal)]
    try {
      await Promise.race(loops)
    } finally {
      inner.abort(new Error('the session with the control plane ended'))
      await Promise.allSettled(loops)
    }
  }

  async #renew(periodMs: number, signal: AbortSignal): Promise<void> {
    const { client, lease, warden, clock, workers, log, metrics } = this.#world
    for (let failed = false; ; ) {
      await clock.wait(failed ? RENEW_RETRY_MS : periodMs, signal)
      const settled = workers.settled()
      try {
        const { epoch, host_id } = lease.record
        const sent = await warden.moment()
        const answer = await client.renew(host_id, { epoch, boot_id: lease.bootId }, signal)
        if (answer.epoch !== epoch) throw new Error(`the control plane has renewed epoch ${answer.epoch} in the place of ${epoch}`)
        await warden.renewed(sent)
        await lease.heard(answer.seq)
        for (const worker of settled) worker.hearSeq(answer.seq)
        workers.sweep()
        failed = false
        this.#renewed = true
        metrics.count('sandglass_host_lease_renewals_total', { outcome: 'answered' })
      } catch (error) {
        signal.throwIfAborted()
        if (await this.#isLost(error)) throw new EpochLost(reasonOf(error), { cause: error })
        log.warn('host.renew_failed', { reason: reasonOf(error) })
        failed = true
        this.#renewed = false
        metrics.count('sandglass_host_lease_renewals_total', { outcome: 'failed' })
      }
    }
  }

  /** A floor that could not be written is, before the next epoch is asked for. */
  async #isLost(error: unknown): Promise<boolean> {
    const { lease, log } = this.#world
    try {
      return await lease.refused(toldEpoch(error))
    } catch (cause) {
      log.error('host.floor_unwritten', { reason: reasonOf(cause) })
      return true
    }
  }

  async #watch(keys: ReadonlyMap<string, KeyObject>, signal: AbortSignal): Promise<void> {
    const { clock, chance, log } = this.#world
    const pause = backoff(clock, chance)
    for (;;) {
      try {
        await this.#watchOnce(keys, signal, () => pause.reset())
        log.info('host.watch_ended')
      } catch (error) {
        signal.throwIfAborted()
        log.warn('host.watch_failed', { reason: reasonOf(error) })
      }
      await pause.wait(signal)
    }
  }

  async #watchOnce(keys: ReadonlyMap<string, KeyObject>, outer: AbortSignal, heard: () => void): Promise<void> {
    const { client, lease, workers, pools, reports, clock, log, metrics } = this.#world
    const silence = new AbortController()
    const expire = (): void => silence.abort(new Error('the watch has been silent for too long'))
    let timer = setTimeout(expire, LIMITS.hostWatchSilenceMs)
    const { host_id: hostId, epoch } = lease.record
    try {
      for await (const order of client.watch(hostId, epoch, AbortSignal.any([outer, silence.signal]))) {
        clearTimeout(timer)
        timer = setTimeout(expire, LIMITS.hostWatchSilenceMs)
        heard()
        if (order.type === 'heartbeat' || order.type === 'synced') continue
        try {
          takeOrder(order, { workers, pools, reports, keys, hostId, clock, log })
          metrics.count('sandglass_host_orders_total', { type: order.type, outcome: 'taken' })
        } catch (error) {
          metrics.count('sandglass_host_orders_total', { type: order.type, outcome: 'refused' })
          log.error('order.refused', { reason: reasonOf(error) })
        }
      }
    } finally {
      clearTimeout(timer)
      silence.abort()
    }
  }

  async #report(signal: AbortSignal): Promise<void> {
    const { client, lease, reports, clock, log } = this.#world
    for (;;) {
      await this.#reportsDue(signal)
      const batch = reports.batch()
      try {
        const { epoch, host_id } = lease.record
        const { results } = await client.report(host_id, { epoch, items: batch.items }, signal)
        batch.settle(results.map((result) => result.outcome))
      } catch (error) {
        signal.throwIfAborted()
        log.warn('host.report_failed', { reason: reasonOf(error), due: batch.items.length })
        await clock.wait(LIMITS.hostReportRepeatMs, signal)
      }
    }
  }

  #reportsDue(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        signal.removeEventListener('abort', onAbort)
        this.#wakeReports = () => {}
      }
      const onAbort = (): void => {
        stop()
        reject(signal.reason)
      }
      if (signal.aborted) return onAbort()
      if (this.#world.reports.size > 0) return resolve()
      signal.addEventListener('abort', onAbort, { once: true })
      this.#wakeReports = () => {
        stop()
        resolve()
      }
    })
  }
}

/** What a refusal says of the epoch that SQL holds; undefined for any other failure. */
const toldEpoch = (error: unknown): number | undefined => (error instanceof CodedError && error.code === 'stale_epoch' ? error.context.epoch : undefined)
