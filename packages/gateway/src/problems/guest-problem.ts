/**
 * What an answer that is not a success means to the client.
 *
 * The body comes from a guest and is hostile: a guest may only say the codes that the guest protocol gives it. Otherwise a sandbox could
 * tell a client that its key is invalid or that another host should be asked. The host agent marks its own refusals with a header that it
 * strips from guests, and has a list of its own.
 */
import { CodedError, type ErrorCode, isErrorCode } from '@sandglass/contract'

/** Set by host agents on what they answer themselves. */
export const ANSWER_SOURCE_HEADER = 'sandglass-from'

const GUEST_CODES: ReadonlySet<ErrorCode> = new Set([
  'invalid_request',
  'path_invalid',
  'body_too_large',
  'limit_exceeded',
  'method_not_allowed',
  'route_not_found',
  'precondition_failed',
  'range_not_satisfiable',
  'process_not_found',
  'process_exited',
  'process_key_conflict',
  'process_limit',
  'executable_not_found',
  'executable_not_runnable',
  'cwd_not_found',
  'user_not_found',
  'stdin_closed',
  'stdin_offset',
  'not_a_terminal',
  'output_gone',
  'file_not_found',
  'file_exists',
  'not_a_directory',
  'is_a_directory',
  'directory_not_empty',
  'not_a_regular_file',
  'permission_denied',
  'no_space',
  'archive_invalid',
  'archive_limit',
  'too_many_open_files',
  'overloaded',
  'internal',
] satisfies ErrorCode[])

const HOST_CODES: ReadonlySet<ErrorCode> = new Set([
  'stale_generation',
  'stale_epoch',
  'sandbox_not_found',
  'sandbox_not_ready',
  'sandbox_ended',
  'lost_contact',
  'unavailable',
  'overloaded',
  'invalid_request',
  'internal',
] satisfies ErrorCode[])

const MAX_DETAIL_CHARACTERS = 1_000
// Control characters of a guest must not reach the terminal of whoever reads the error.
// biome-ignore lint/complexity/useRegexLiterals: the escapes stay readable in a string
const CONTROL = new RegExp('[\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]', 'g')

export function boundedDetail(text: unknown): string | undefined {
  if (typeof text !== 'string' || text === '') return undefined
  return text.slice(0, MAX_DETAIL_CHARACTERS).replaceAll(CONTROL, '\ufffd')
}

export type AnswerSource = 'guest' | 'host'

/** The error for a code and a sentence that came from the other side. */
export function upstreamError(source: AnswerSource, code: unknown, detail: unknown): CodedError {
  const allowed = source === 'host' ? HOST_CODES : GUEST_CODES
  if (isErrorCode(code) && allowed.has(code)) return new CodedError(code, boundedDetail(detail))
  return new CodedError('internal', `The ${source === 'host' ? 'host' : 'sandbox'} answered with an error that is not known here.`)
}

/** @param body of an answer whose status is not a success */
export function errorOfAnswer(source: AnswerSource, body: Uint8Array): CodedError {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return upstreamError(source, undefined, undefined)
  }
  if (typeof value !== 'object' || value === null) return upstreamError(source, undefined, undefined)
  return upstreamError(source, 'code' in value ? value.code : undefined, 'detail' in value ? value.detail : undefined)
}
