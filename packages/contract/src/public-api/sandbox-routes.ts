/** Sandboxes, what happens to them, and the operations that make it happen. */
import Type from 'typebox'
import { OperationSchema } from '../operation.ts'
import { CreateSandboxSchema, ExtendSandboxSchema, SandboxSchema, SandboxStatusSchema, UpdateSandboxSchema } from '../sandbox.ts'
import { closed } from '../schema.ts'
import { page, SandboxListSchema } from './lists.ts'
import { api, type PublicRoute } from './public-route.ts'

export const ListSandboxesQuerySchema = closed({
  ...page,
  status: Type.Optional(SandboxStatusSchema),
  template: Type.Optional(Type.String({ maxLength: 63 })),
  name: Type.Optional(Type.String({ maxLength: 63 })),
  include_ended: Type.Optional(Type.Boolean({ description: 'Also sandboxes that are deleted, for as long as they are kept.' })),
  metadata: Type.Optional(Type.String({ maxLength: 600, description: '`key=value`, exact.' })),
})
export const EventsQuerySchema = closed({
  since: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'A position to go on behind; 0 is everything that is kept. `Last-Event-ID` goes before it; without both it begins now.',
    }),
  ),
})

export const SANDBOX_ROUTES = {
  createSandbox: {
    method: 'POST',
    path: '/v1/sandboxes',
    server: 'control-plane',
    role: 'member',
    summary: 'Create a sandbox',
    headers: ['Idempotency-Key', 'Prefer'],
    body: CreateSandboxSchema,
    responses: { 201: SandboxSchema, 202: SandboxSchema },
    errors: [
      ...api,
      'name_taken',
      'template_not_found',
      'network_mode_unavailable',
      'isolation_unavailable',
      'unschedulable_never',
      'quota_exceeded',
      'sandbox_start_failed',
      'idempotency_key_reused',
      'idempotency_in_progress',
      'limit_exceeded',
    ],
  },
  listSandboxes: {
    method: 'GET',
    path: '/v1/sandboxes',
    server: 'control-plane',
    role: 'viewer',
    summary: 'List sandboxes',
    query: ListSandboxesQuerySchema,
    responses: { 200: SandboxListSchema },
    errors: api,
  },
  getSandbox: {
    method: 'GET',
    path: '/v1/sandboxes/{id}',
    server: 'control-plane',
    role: 'viewer',
    summary: 'Inspect a sandbox, by id or name',
    responses: { 200: SandboxSchema },
    errors: [...api, 'sandbox_not_found'],
  },
  updateSandbox: {
    method: 'PATCH',
    path: '/v1/sandboxes/{id}',
    server: 'control-plane',
    role: 'member',
    summary: 'Change name or metadata',
    body: UpdateSandboxSchema,
    responses: { 200: SandboxSchema },
    errors: [...api, 'sandbox_not_found', 'name_taken', 'sandbox_ended'],
  },
  deleteSandbox: {
    method: 'DELETE',
    path: '/v1/sandboxes/{id}',
    server: 'control-plane',
    role: 'member',
    summary: 'Delete a sandbox; twice is fine',
    headers: ['Prefer'],
    responses: { 202: OperationSchema, 204: null },
    errors: [...api, 'sandbox_not_found'],
  },
  extendSandbox: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/extend',
    server: 'control-plane',
    role: 'member',
    summary: 'Move the deadline further',
    body: ExtendSandboxSchema,
    responses: { 200: SandboxSchema },
    errors: [...api, 'sandbox_not_found', 'sandbox_ended'],
  },
  getOperation: {
    method: 'GET',
    path: '/v1/operations/{id}',
    server: 'control-plane',
    role: 'viewer',
    summary: 'Read an operation',
    headers: ['Prefer'],
    responses: { 200: OperationSchema },
    errors: [...api, 'operation_not_found'],
  },
  streamEvents: {
    method: 'GET',
    path: '/v1/events',
    server: 'control-plane',
    role: 'viewer',
    summary: 'Changes of the tenant’s sandboxes as server-sent events: `ready`, `change`, `gap`, `heartbeat`, `error`',
    query: EventsQuerySchema,
    headers: ['Last-Event-ID'],
    responses: { 200: 'events' },
    errors: [...api, 'too_many_sessions'],
  },
} as const satisfies Record<string, PublicRoute>
