/**
 * The error registry: the only place where an error code is born.
 *
 * A code has one HTTP status, one title, advice on retrying, and a line that says what to do next. The API, the gateway,
 * the guest agent, the SDK and the CLI all use these codes; the error page and the OpenAPI document are made from this table.
 * A broken invariant is not an error of this kind: it is an assertion, shown to clients as `internal`.
 */

type Entry = {
  readonly status: number
  readonly title: string
  /** May the same request succeed later without being changed? */
  readonly retryable: boolean
  /** One sentence: what the reader can do. */
  readonly next: string
}

const entry = (status: number, title: string, retryable: boolean, next: string): Entry => ({
  status,
  title,
  retryable,
  next,
})

export const ERRORS = {
  // Request
  invalid_request: entry(400, 'Invalid request', false, 'Correct the fields named in `errors` and send it again.'),
  invalid_id: entry(404, 'Not an id', false, 'Ids look like `sbl1` followed by sixteen characters; take one from a list.'),
  path_invalid: entry(400, 'Invalid path', false, 'Give an absolute path without NUL, within the length limits, outside protected places.'),
  body_too_large: entry(413, 'Body too large', false, 'Send less, or use the files or archive endpoints, which stream.'),
  limit_exceeded: entry(422, 'Limit exceeded', false, 'Stay within the limit named in `limit`.'),
  unsupported_media_type: entry(415, 'Unsupported media type', false, 'Send the content type that the API reference names.'),
  method_not_allowed: entry(405, 'Method not allowed', false, 'Use a method that the API reference names for this path.'),
  route_not_found: entry(404, 'No such route', false, 'See /openapi.json for the paths that exist.'),
  precondition_failed: entry(412, 'Precondition failed', false, 'Read the resource again and retry with its current ETag.'),
  range_not_satisfiable: entry(416, 'Range not satisfiable', false, 'Ask for a range inside the size of the resource.'),
  rate_limited: entry(429, 'Too many requests', true, 'Send fewer; `RateLimit` says what is left, `Retry-After` when to go on.'),

  // Identity
  unauthenticated: entry(401, 'Not authenticated', false, 'Send `Authorization: Bearer sgk_…` with a key that is valid.'),
  forbidden: entry(403, 'Not allowed', false, 'Use a key whose role allows this.'),
  certificate_required: entry(401, 'No certificate', false, 'Machines show the certificate that they got when they joined: `sandglass host join`.'),
  certificate_refused: entry(403, 'Certificate refused', false, 'Join again with a new token: `sandglass host token create`, then `sandglass host join`.'),
  join_token_unknown: entry(401, 'No such join token', false, 'Make one with `sandglass host token create`, and give all of it.'),
  join_token_expired: entry(401, 'Join token is over', false, 'It was revoked or its time has passed: make another with `sandglass host token create`.'),
  join_token_used: entry(409, 'Join token is used', false, 'One token lets one machine in: make another with `sandglass host token create`.'),
  identity_taken: entry(409, 'Another machine has this identity', false, 'Remove that host first (`sandglass host rm`), or join from a new state directory.'),

  // Idempotency
  idempotency_key_reused: entry(422, 'Idempotency key reused', false, 'Use a new key for a different request.'),
  idempotency_in_progress: entry(409, 'First request still running', true, 'Repeat the same request with the same key in a moment.'),

  // Sandboxes
  sandbox_not_found: entry(404, 'No such sandbox', false, 'Compare with the list of your sandboxes; one that was deleted is found by its id only.'),
  sandbox_not_ready: entry(409, 'Sandbox is not ready', true, 'Wait until its status is `ready`.'),
  sandbox_ended: entry(410, 'Sandbox has ended', false, 'Create a new sandbox.'),
  sandbox_stopped: entry(
    409,
    'Sandbox is stopped',
    false,
    'Start it: `POST /v1/sandboxes/{id}/start`, or `sandglass start ID`. What was written in it is gone; it begins with an empty layer.',
  ),
  sandbox_failed: entry(409, 'Sandbox failed', false, 'Start it anew, or delete it and create another; its `status_reason` says why.'),
  sandbox_start_failed: entry(500, 'Sandbox did not start', true, 'Try again; if it repeats, run `sandglass doctor` on the host.'),
  name_taken: entry(409, 'Name is taken', false, 'Use that one, delete it, or choose another name.'),
  template_not_found: entry(404, 'No such template', false, 'List the templates that there are.'),
  network_mode_unavailable: entry(422, 'Network mode not available', false, 'Use network mode `none`; other modes are not available on this installation yet.'),
  isolation_unavailable: entry(422, 'Isolation not available', false, 'Use `auto` or an isolation that the list of hosts shows as proved.'),
  unschedulable_never: entry(422, 'No host can ever fit this', false, 'Ask for less, or add a larger host.'),
  unschedulable: entry(503, 'No capacity at the moment', true, 'Wait, end other sandboxes, or add a host.'),
  quota_exceeded: entry(
    429,
    'Quota exceeded',
    true,
    'End or delete something, or have the operator raise the tenant\u2019s row in `quotas`; `limit` names the amount.',
  ),
  operation_not_found: entry(404, 'No such operation', false, 'Operations are kept for a limited time; read the resource itself.'),
  operation_overtaken: entry(409, 'Operation overtaken', false, 'Read the sandbox: a later request changed what is wanted of it.'),
  operation_failed: entry(500, 'Operation failed', true, 'Read the operation for its problem.'),
  host_not_found: entry(404, 'No such host', false, 'List the hosts that there are.'),
  host_ambiguous: entry(409, 'Several hosts have this name', false, 'Name it by its id, which the list of hosts shows.'),
  host_in_use: entry(409, 'Host is in use', false, 'Drain it, and remove it when its drain says that nothing is left.'),
  api_key_not_found: entry(404, 'No such API key', false, 'List the keys that there are.'),
  join_token_not_found: entry(404, 'No such join token', false, 'List the tokens that there are.'),

  // Processes
  process_not_found: entry(404, 'No such process', false, 'List the processes of the sandbox: those that run, and ended ones that are still remembered.'),
  process_exited: entry(409, 'Process has exited', false, 'Read its result and its output, which are kept for a time; to go on, start a new one.'),
  process_running: entry(409, 'Process is running', false, 'End it first, or wait until it has exited.'),
  process_timed_out: entry(408, 'Process timed out', false, 'Give it a longer timeout.'),
  command_failed: entry(422, 'Command failed', false, 'Read `result` for its exit code and standard error.'),
  process_key_conflict: entry(409, 'Process key reused', false, 'Use a new process_key for a different command.'),
  process_limit: entry(429, 'Too many processes', true, 'Wait for processes to end.'),
  executable_not_found: entry(400, 'Executable not found', false, 'Check argv[0] and PATH inside the sandbox.'),
  executable_not_runnable: entry(400, 'Executable cannot run', false, 'Check its mode and format.'),
  cwd_not_found: entry(400, 'Working directory not found', false, 'Create it first or choose another.'),
  user_not_found: entry(400, 'No such user', false, 'Name a user of the sandbox\u2019s /etc/passwd, or a uid.'),
  stdin_closed: entry(409, 'Standard input is closed', false, 'Start the process with `stdin: true` and write before closing.'),
  stdin_offset: entry(
    409,
    'Wrong stdin offset',
    false,
    'Another client wrote meanwhile, or bytes in between are missing: attach again, or go on from `stdin.accepted`.',
  ),
  not_a_terminal: entry(409, 'Not a terminal', false, 'Start the process with `tty`.'),
  output_gone: entry(410, 'Output is no longer kept', false, 'Read output sooner, or redirect it to a file.'),
  lost_contact: entry(502, 'Lost contact with the sandbox', true, 'Attach again with the process id and the offset reached.'),

  // Files
  file_not_found: entry(404, 'No such file', false, 'Check the path.'),
  file_exists: entry(409, 'File exists', false, 'Choose another name or remove it first.'),
  not_a_directory: entry(409, 'Not a directory', false, 'Check the path.'),
  is_a_directory: entry(409, 'Is a directory', false, 'Use the archive or list endpoint for directories.'),
  directory_not_empty: entry(409, 'Directory is not empty', false, 'Remove it recursively.'),
  not_a_regular_file: entry(409, 'Not a regular file', false, 'Only regular files can be read or written.'),
  permission_denied: entry(403, 'Permission denied in the sandbox', false, 'Use `user=root` or change the mode.'),
  no_space: entry(507, 'No space left in the sandbox', false, 'Delete files or create a sandbox with a larger disk_gb.'),
  archive_invalid: entry(400, 'Archive refused', false, 'Remove the entry named in `detail`.'),
  archive_limit: entry(413, 'Archive too large', false, 'Split the archive.'),
  too_many_open_files: entry(503, 'Too many open files in the sandbox', true, 'Close files or watchers.'),
  identity_conflict: entry(409, 'Sandbox identity already set', false, 'A sandbox is given an identity once.'),

  // Sessions
  malformed_frame: entry(400, 'Malformed frame', false, 'Frames are `[channel byte][payload]`; see the API reference.'),
  too_many_sessions: entry(429, 'Too many sessions', true, 'Close sessions that are not used.'),
  terminal_taken_over: entry(
    409,
    'Terminal taken over',
    false,
    'Another client types now; come back with `takeover` to take it from there, or with `view` only to watch.',
  ),
  session_revoked: entry(403, 'Session revoked', false, 'The key was revoked or the sandbox changed; connect again.'),

  // Host protocol
  stale_generation: entry(409, 'Stale generation', false, 'A newer generation exists; drop this one.'),
  stale_epoch: entry(409, 'Stale epoch', false, 'Register again.'),
  ticket_invalid: entry(403, 'Ticket refused', false, 'Only tickets signed by this installation are accepted.'),
  ticket_expired: entry(403, 'Ticket expired', true, 'A fresh ticket is sent by itself.'),
  protocol_unsupported: entry(426, 'Protocol version not supported', false, 'Upgrade the older side.'),

  // Installation
  port_in_use: entry(409, 'Port in use', false, 'Choose another port, for example with --api-port or --gateway-port.'),
  root_required: entry(403, 'Root required', false, 'Run it with sudo.'),
  role_not_ready: entry(500, 'A role did not become ready', true, 'Read its log with `sandglass logs`.'),

  // System
  overloaded: entry(503, 'Overloaded', true, 'Try again after `Retry-After`.'),
  unavailable: entry(503, 'Temporarily unavailable', true, 'Try again after `Retry-After`.'),
  client_timeout: entry(504, 'No answer in time', true, 'Try again or give a longer timeout.'),
  internal: entry(500, 'Internal error', true, 'Try again; report the request_id if it repeats.'),
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof ERRORS

export function isErrorCode(text: unknown): text is ErrorCode {
  return typeof text === 'string' && Object.hasOwn(ERRORS, text)
}

/** One field of the input that was wrong. `path` is a JSON pointer. */
export type FieldError = { readonly path: string; readonly message: string }

export type ErrorContext = {
  readonly errors?: readonly FieldError[]
  readonly limit?: { readonly name: string; readonly value: number }
  readonly retryAfterSeconds?: number
  /** With `stale_epoch`: the epoch of the host that the database holds now. */
  readonly epoch?: number
  readonly cause?: unknown
}

/** An expected refusal or failure with a code from the registry. */
export class CodedError extends Error {
  override readonly name = 'CodedError'
  readonly code: ErrorCode
  readonly context: ErrorContext

  /** @param detail one sentence for a person; the registry's advice is used where it is absent */
  constructor(code: ErrorCode, detail?: string, context: ErrorContext = {}) {
    super(detail ?? `${ERRORS[code].title}. ${ERRORS[code].next}`, { cause: context.cause })
    this.code = code
    this.context = context
  }

  get status(): number {
    return ERRORS[this.code].status
  }

  get retryable(): boolean {
    return ERRORS[this.code].retryable
  }
}
