/**
 * What the roles need of tracing, and what it is while nobody listens.
 *
 * A trace crosses processes as a W3C `traceparent` (https://www.w3.org/TR/trace-context/), which is a hint like every message: lost or wrong,
 * it changes what an operator sees and nothing else. A role that records nothing hands on what it was given.
 */
/** `consumer`: works on what was sent to it, while nobody holds a request open for the answer. */
export type SpanKind = 'server' | 'client' | 'consumer' | 'internal'
/** Never a secret, never text that a client chose beyond ids and names. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

export type SpanStart = {
  readonly kind: SpanKind
  /** `traceparent` of the caller, as it came; what is not one is ignored. */
  readonly parent?: string | undefined
  readonly attributes?: Attributes
  /** Wall clock; now when it is not given. */
  readonly startedAtMs?: number
}

export type OpenSpan = {
  /** For the next hop; undefined when there is nothing to tell. */
  readonly traceparent: string | undefined
  set(attributes: Attributes): void
  /** @param error why it failed, as a code @param endedAtMs wall clock; now when it is not given */
  end(how?: { readonly error?: string | undefined; readonly endedAtMs?: number }): void
}

export type Tracing = {
  readonly isOn: boolean
  open(name: string, start: SpanStart): OpenSpan
  /** Sends what is still held, for a bounded time. */
  stop(): Promise<void>
}

const VERSION_00 = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

export const isTraceparent = (value: unknown): value is string => typeof value === 'string' && VERSION_00.test(value)

export const noTracing: Tracing = {
  isOn: false,
  open: (_name, { parent }) => ({ traceparent: isTraceparent(parent) ? parent : undefined, set() {}, end() {} }),
  stop: async () => {},
}
