/** Commands and processes of one sandbox. */
import Type from 'typebox'
import { LIMITS } from '../limits.ts'
import { ExecResultSchema, ExecSchema, PROCESS_KEY_PATTERN, ProcessListSchema, ProcessSchema, SignalProcessSchema, StdinAcceptedSchema } from '../process.ts'
import { closed, oneOf } from '../schema.ts'
import { data, flag, type PublicRoute, start } from './public-route.ts'

export const PROCESS_ROUTES = {
  exec: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/exec',
    server: 'gateway',
    role: 'member',
    summary: 'Run a command: JSON result, or events with Accept: text/event-stream; GET with a WebSocket upgrade for both directions',
    body: ExecSchema,
    responses: { 200: ExecResultSchema, 201: ProcessSchema },
    errors: [...data, ...start, 'body_too_large'],
  },
  listProcesses: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/processes',
    server: 'gateway',
    role: 'viewer',
    summary: 'List processes',
    responses: { 200: ProcessListSchema },
    errors: data,
  },
  getProcess: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/processes/{process_id}',
    server: 'gateway',
    role: 'viewer',
    summary: 'Read a process, by id or `key:KEY`',
    responses: { 200: ProcessSchema },
    errors: [...data, 'process_not_found'],
  },
  signalProcess: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/processes/{process_id}/signal',
    server: 'gateway',
    role: 'member',
    summary: 'Signal a process and its descendants',
    body: SignalProcessSchema,
    responses: { 200: ProcessSchema },
    errors: [...data, 'process_not_found', 'process_exited', 'invalid_request'],
  },
  resizeProcess: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/processes/{process_id}/resize',
    server: 'gateway',
    role: 'member',
    summary: 'Set the size of a terminal',
    body: closed({ cols: Type.Integer({ minimum: 1, maximum: LIMITS.terminalColumns }), rows: Type.Integer({ minimum: 1, maximum: LIMITS.terminalRows }) }),
    responses: { 200: ProcessSchema },
    errors: [...data, 'process_not_found', 'not_a_terminal', 'invalid_request'],
  },
  writeStdin: {
    method: 'POST',
    path: '/v1/sandboxes/{id}/processes/{process_id}/stdin',
    server: 'gateway',
    role: 'member',
    summary: 'Write to standard input, streamed',
    query: closed({
      offset: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$', description: 'Of the first byte; what was accepted of it before is skipped.' })),
      writer: Type.Optional(Type.String({ pattern: PROCESS_KEY_PATTERN, description: 'Who writes: only what the same writer gave counts as a repeat.' })),
      close: flag,
    }),
    body: 'bytes',
    responses: { 200: StdinAcceptedSchema },
    errors: [...data, 'process_not_found', 'stdin_closed', 'stdin_offset'],
  },
  readOutput: {
    method: 'GET',
    path: '/v1/sandboxes/{id}/processes/{process_id}/output',
    server: 'gateway',
    role: 'viewer',
    summary: 'Exact output bytes of one stream from an offset; `Sandglass-Offset` names the first byte’s, and a gap is `output_gone` unless allow_gap=1',
    query: closed({
      stream: Type.Optional(oneOf(['stdout', 'stderr'])),
      since: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$' })),
      follow: flag,
      allow_gap: flag,
    }),
    responses: { 200: 'bytes' },
    errors: [...data, 'process_not_found', 'output_gone', 'invalid_request'],
  },
} as const satisfies Record<string, PublicRoute>
