/**
 * Who may come in now: first a place among the requests that are worked on, then a token of the rate.
 *
 * A place is taken before the key is looked up, because looking it up is work too. Whose it is, is known from an earlier request of the same key; a key
 * that was never seen counts with others of its address. This memory says only in which queue one stands; it lets nobody in.
 */
import type { IncomingMessage } from 'node:http'
import { LIMITS } from '@sandglass/contract'
import type { Principal } from '../store/api-keys.ts'
import { FairGate, type Place } from './fair-gate.ts'
import { RateLimiter, type RateLimits } from './rate-limiter.ts'

const KEYS_REMEMBERED = 10_000

export class Admission {
  readonly #tenantOfKey = new Map<string, string>()
  readonly #gate: FairGate
  readonly rates: RateLimiter

  constructor(rates: RateLimits, nowMs: () => number) {
    this.rates = new RateLimiter(rates, nowMs)
    this.#gate = new FairGate(
      {
        running: LIMITS.apiRequestsRunning,
        runningPerGroup: LIMITS.apiRequestsRunningPerTenant,
        queued: LIMITS.apiRequestsQueued,
        queuedPerGroup: LIMITS.apiRequestsQueuedPerTenant,
        waitMs: LIMITS.apiQueueWaitMs,
      },
      (ms, callback) => {
        const timer = setTimeout(callback, ms)
        return () => clearTimeout(timer)
      },
    )
  }

  get counts(): { readonly running: number; readonly queued: number } {
    return this.#gate.counts
  }

  /** @throws CodedError `overloaded` */
  async enter(keySha256: string | undefined, request: IncomingMessage, gone: AbortSignal): Promise<Place> {
    return await this.#gate.enter(this.#groupOf(keySha256, request), gone)
  }

  remember(keySha256: string, principal: Principal): void {
    if (this.#tenantOfKey.size >= KEYS_REMEMBERED) this.#tenantOfKey.clear()
    this.#tenantOfKey.set(keySha256, principal.tenantId)
  }

  #groupOf(keySha256: string | undefined, request: IncomingMessage): string {
    const tenant = keySha256 === undefined ? undefined : this.#tenantOfKey.get(keySha256)
    return tenant ?? `address ${request.socket.remoteAddress ?? ''}`
  }
}
