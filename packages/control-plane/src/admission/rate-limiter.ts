/** The buckets of one process. A request takes a token of its key and one of its tenant, or none of either. */
import { CodedError } from '@sandglass/contract'
import type { Principal } from '../store/api-keys.ts'
import { type Bucket, type Policy, rateHeaders, secondsUntilOne, tokensOf } from './rate.ts'

/** Above so many buckets the full ones, which say nothing, are dropped. */
const BUCKETS = 10_000

export type RateLimits = { readonly keyRequests: number; readonly tenantRequests: number; readonly windowSeconds: number }

export class RateLimiter {
  readonly #buckets = new Map<string, Bucket>()
  readonly #policies: readonly Policy[]
  readonly #nowMs: () => number

  constructor({ keyRequests, tenantRequests, windowSeconds }: RateLimits, nowMs: () => number) {
    this.#policies = [
      { name: 'key', quota: keyRequests, windowSeconds },
      { name: 'tenant', quota: tenantRequests, windowSeconds },
    ]
    this.#nowMs = nowMs
  }

  /** @returns headers for the answer, and why not when a bucket is empty */
  take(principal: Pick<Principal, 'apiKeyId' | 'tenantId'>): { headers: ReturnType<typeof rateHeaders>; refusal: CodedError | undefined } {
    const nowMs = this.#nowMs()
    const states = this.#policies.map((policy) => {
      const id = policy.name === 'key' ? principal.apiKeyId : principal.tenantId
      return { id, policy, tokens: tokensOf(this.#buckets.get(id), policy, nowMs) }
    })
    const empty = states
      .map(({ policy, tokens }) => ({ policy, waitSeconds: secondsUntilOne(tokens, policy) }))
      .filter(({ waitSeconds }) => waitSeconds > 0)
      .toSorted((a, b) => b.waitSeconds - a.waitSeconds)[0]
    const left = empty === undefined ? states.map((state) => ({ ...state, tokens: state.tokens - 1 })) : states
    for (const { id, tokens } of left) this.#buckets.set(id, { tokens, atMs: nowMs })
    if (this.#buckets.size > BUCKETS) this.#dropFull(nowMs)
    return { headers: rateHeaders(left), refusal: empty === undefined ? undefined : refusalOf(empty.policy, empty.waitSeconds) }
  }

  #dropFull(nowMs: number): void {
    for (const [id, bucket] of this.#buckets) {
      if (this.#policies.every((policy) => tokensOf(bucket, policy, nowMs) >= policy.quota)) this.#buckets.delete(id)
    }
  }
}

function refusalOf({ name, quota, windowSeconds }: Policy, retryAfterSeconds: number): CodedError {
  const who = name === 'key' ? 'This key' : 'This tenant'
  return new CodedError('rate_limited', `${who} may send ${quota} requests in ${windowSeconds} s. Try again in ${retryAfterSeconds} s.`, {
    limit: { name: name === 'key' ? 'apiRateKeyRequests' : 'apiRateTenantRequests', value: quota },
    retryAfterSeconds,
  })
}
