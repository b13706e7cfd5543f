/**
 * Gateway → control plane, under `/internal/v1`: who may reach which runtime, and when that ends.
 *
 * A gateway sends the SHA-256 of a client's key, never the key. Answers are cached for LIMITS.accessCacheMs; the feed closes live sessions
 * sooner. A route says how long it is valid (route.lease), counted from the gateway's question (route.sent).
 */
import Type, { type Static } from 'typebox'
import { ID_PATTERNS } from './ids.ts'
import { RoleSchema } from './role.ts'
import { SandboxStatusSchema } from './sandbox.ts'
import { closed, nullable } from './schema.ts'

/** POST /internal/v1/access. Problems: `unauthenticated`, `sandbox_not_found` (also someone else's). */
export const AccessQuestionSchema = closed({
  key_sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  sandbox_id: Type.String({ pattern: ID_PATTERNS.sandbox }),
})
export type AccessQuestion = Static<typeof AccessQuestionSchema>

export const RouteSchema = closed({
  host_id: Type.String({ pattern: ID_PATTERNS.host }),
  data_plane_url: Type.String({ maxLength: 255 }),
  generation: Type.Integer({ minimum: 0 }),
  epoch: Type.Integer({ minimum: 0 }),
  valid_for_ms: Type.Integer({ minimum: 0 }),
})
export type Route = Static<typeof RouteSchema>

export const AccessSchema = closed({
  tenant_id: Type.String(),
  api_key_id: Type.String(),
  role: RoleSchema,
  status: SandboxStatusSchema,
  status_reason: nullable(Type.String()),
  route: nullable(RouteSchema),
})
export type Access = Static<typeof AccessSchema>

/** One line of GET /internal/v1/feed (NDJSON). After `lost`, the reader must treat everything cached as unknown. */
export const FeedEventSchema = Type.Union([
  closed({ type: Type.Literal('key_revoked'), api_key_id: Type.String() }),
  closed({ type: Type.Literal('sandbox_changed'), sandbox_id: Type.String(), generation: Type.Integer({ minimum: 0 }) }),
  /** Routes to this host of an epoch before this one lead nowhere; what they were for ends, or begins again elsewhere. */
  closed({ type: Type.Literal('host_fenced'), host_id: Type.String(), epoch: Type.Integer({ minimum: 0 }) }),
  closed({ type: Type.Literal('heartbeat') }),
])
export type FeedEvent = Static<typeof FeedEventSchema>
