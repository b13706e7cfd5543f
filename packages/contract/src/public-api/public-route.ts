/** What a route of the public API says of itself, and what many of them share. */
import type { TSchema } from 'typebox'
import Type from 'typebox'
import type { ErrorCode } from '../errors.ts'
import type { Role } from '../role.ts'
import { oneOf } from '../schema.ts'

export type PublicRoute = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD'
  readonly path: string
  readonly server: 'control-plane' | 'gateway'
  readonly summary: string
  readonly role: Role | 'anyone'
  readonly query?: TSchema
  readonly headers?: readonly ('Idempotency-Key' | 'Prefer' | 'Last-Event-ID' | 'Range' | 'If-Range' | 'If-Match' | 'If-None-Match')[]
  readonly body?: TSchema | 'bytes' | 'tar'
  /** By status. `bytes`, `tar`, `frames`, `events` and `ndjson` are streams; null is no body. */
  readonly responses: Readonly<Record<number, TSchema | 'bytes' | 'tar' | 'ndjson' | 'events' | 'text' | null>>
  readonly errors: readonly ErrorCode[]
}

export const flag = Type.Optional(oneOf(['0', '1']))

/** Of every route of a sandbox that the gateway serves. All of them refuse a query that they do not know. */
export const data: readonly ErrorCode[] = [
  'invalid_request',
  'unauthenticated',
  'forbidden',
  'sandbox_not_found',
  'sandbox_not_ready',
  'sandbox_ended',
  'sandbox_stopped',
  'sandbox_failed',
  'session_revoked',
  'too_many_sessions',
  'lost_contact',
  'client_timeout',
  'overloaded',
  'unavailable',
]
/** Of every route of the control plane. */
export const api: readonly ErrorCode[] = ['unauthenticated', 'forbidden', 'invalid_request', 'rate_limited', 'overloaded', 'unavailable']
/** Of what starts a program. */
export const start: readonly ErrorCode[] = [
  'invalid_request',
  'executable_not_found',
  'executable_not_runnable',
  'cwd_not_found',
  'user_not_found',
  'process_key_conflict',
  'process_limit',
]
