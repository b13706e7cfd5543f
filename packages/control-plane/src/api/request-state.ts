/** What a request carries through its hooks. */
import type { OpenSpan } from '@sandglass/telemetry'
import type { Place } from '../admission/fair-gate.ts'
import type { Principal } from '../store/api-keys.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the hook that authenticates; null on routes for anyone. */
    principal: Principal | null
    beganMs: number
    /** Among the requests that are worked on; left at the answer, or sooner by one that only waits. */
    place: Place | undefined
    /** Undefined for what machines ask every few seconds. */
    span: OpenSpan | undefined
  }
}
