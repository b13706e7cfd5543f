/**
 * Requests per time, as token buckets: a key and a tenant each have `quota` tokens that come back evenly over `windowSeconds`. Pure: time goes in.
 *
 * Counted in each process for itself: with several control planes behind one address the limits are per process, which keeps the database out of it.
 */
export type Policy = { readonly name: 'key' | 'tenant'; readonly quota: number; readonly windowSeconds: number }
export type Bucket = { readonly tokens: number; readonly atMs: number }

/** @returns the tokens that a bucket holds now; a new one is full */
export function tokensOf(bucket: Bucket | undefined, policy: Policy, nowMs: number): number {
  if (bucket === undefined) return policy.quota
  const refilled = (Math.max(0, nowMs - bucket.atMs) * policy.quota) / (policy.windowSeconds * 1_000)
  return Math.min(policy.quota, bucket.tokens + refilled)
}

/** @returns seconds until a bucket with so many tokens has one for a request; 0 when it has */
export function secondsUntilOne(tokens: number, policy: Policy): number {
  // Sums of fractions come out a hair below a whole token; nobody waits for that.
  return tokens >= 1 - 1e-9 ? 0 : Math.ceil(((1 - tokens) * policy.windowSeconds) / policy.quota)
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-09): the quota per window; what is left, and when all of it is back. */
export function rateHeaders(states: readonly { readonly policy: Policy; readonly tokens: number }[]): { 'ratelimit-policy': string; ratelimit: string } {
  const full = ({ policy, tokens }: (typeof states)[number]) => Math.ceil(((policy.quota - tokens) * policy.windowSeconds) / policy.quota)
  return {
    'ratelimit-policy': states.map(({ policy }) => `"${policy.name}";q=${policy.quota};w=${policy.windowSeconds}`).join(', '),
    ratelimit: states.map((state) => `"${state.policy.name}";r=${Math.floor(state.tokens + 1e-9)};t=${full(state)}`).join(', '),
  }
}
