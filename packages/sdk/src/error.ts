/** The one error class of the SDK: a code of the registry and what the server said beside it. */
import { CodedError, ERRORS, type ErrorCode, type FieldError } from '@sandglass/contract/errors'
import { parseProblem } from '@sandglass/contract/problem'
import type { ExecResult } from './exec-result.ts'

/** Everything that an error may carry beside its code. */
export type SandglassErrorContext = {
  readonly status?: number | undefined
  readonly retryable?: boolean | undefined
  readonly requestId?: string | undefined
  readonly errors?: readonly FieldError[] | undefined
  readonly limit?: { readonly name: string; readonly value: number } | undefined
  readonly docs?: string | undefined
  readonly retryAfterSeconds?: number | undefined
  readonly result?: ExecResult | undefined
  readonly cause?: unknown
}

/**
 * A refusal, a failure or lost contact. Switch on `code`; the message is a sentence for people.
 *
 * A call that was stopped by the caller's own `AbortSignal` throws that signal's reason instead.
 */
export class SandglassError extends Error {
  override readonly name = 'SandglassError'
  /** A code of the error registry, for example `sandbox_not_found`. */
  readonly code: ErrorCode
  /** May the same call succeed later without being changed? */
  readonly retryable: boolean
  /** HTTP status that belongs to the code. */
  readonly status: number
  /** What was wrong and what to do next, one or two sentences. The same text as `message`. */
  readonly detail: string
  /** Name this when you ask an operator: it is in the server's log. Absent when no server answered. */
  readonly requestId: string | undefined
  /** The fields that were wrong, as JSON pointers; empty when it was not about fields. */
  readonly errors: readonly FieldError[]
  /** The limit that was reached, when it was about one. */
  readonly limit: { readonly name: string; readonly value: number } | undefined
  /** Where the code is documented: a URL on the API's server, or a path when no server was involved. */
  readonly docs: string
  /** Seconds that the server asked to wait, when it did. */
  readonly retryAfterSeconds: number | undefined
  /** What a command had printed until then; only for `process_timed_out` and `command_failed`. */
  readonly result: ExecResult | undefined

  /** @param detail one sentence for a person; the registry's advice where it is absent */
  constructor(code: ErrorCode, detail?: string, context: SandglassErrorContext = {}) {
    super(detail ?? `${ERRORS[code].title}. ${ERRORS[code].next}`, context.cause === undefined ? undefined : { cause: context.cause })
    this.code = code
    this.retryable = context.retryable ?? ERRORS[code].retryable
    this.status = context.status ?? ERRORS[code].status
    this.detail = this.message
    this.requestId = context.requestId
    this.errors = context.errors ?? []
    this.limit = context.limit
    this.docs = context.docs ?? `/docs/errors#${code}`
    this.retryAfterSeconds = context.retryAfterSeconds
    this.result = context.result
  }
}

/** Reads `Retry-After` (seconds, or an HTTP date against `nowMs`). */
export function parseRetryAfter(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined
  if (/^[0-9]{1,6}$/.test(value)) return Number(value)
  // Date.parse reads almost anything; an HTTP date begins with the day of the week.
  const at = /^[A-Z][a-z]{2}, /.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - nowMs) / 1000))
}

/** The code to show when a party that does not speak problems (a proxy, a load balancer) answered. */
function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'unauthenticated'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'route_not_found'
  if (status === 413) return 'body_too_large'
  if (status === 502) return 'lost_contact'
  if (status === 429 || status === 503) return 'overloaded'
  if (status === 504) return 'client_timeout'
  return 'internal'
}

/** Where the API's server documents a code, whoever said it: of all servers it is the one that stays. */
export const docsOf = (apiUrl: string, code: ErrorCode): string => `${new URL(apiUrl).origin}/docs/errors#${code}`

/** Makes the error that an HTTP answer outside 2xx stands for; `text` is its body, perhaps cut off. */
export function errorOfAnswer(answer: { status: number; url: string; apiUrl: string; text: string; retryAfterSeconds: number | undefined }): SandglassError {
  const problem = parseProblem(jsonOf(answer.text))
  if (problem === undefined) {
    const code = codeOfStatus(answer.status)
    return new SandglassError(code, `${new URL(answer.url).origin} answered ${answer.status} without a problem document. ${ERRORS[code].next}`, {
      status: answer.status,
      docs: docsOf(answer.apiUrl, code),
      retryAfterSeconds: answer.retryAfterSeconds,
    })
  }
  return new SandglassError(problem.code, problem.detail, {
    status: problem.status,
    retryable: problem.retryable,
    requestId: problem.request_id,
    errors: problem.errors,
    limit: problem.limit,
    docs: docsOf(answer.apiUrl, problem.code),
    retryAfterSeconds: answer.retryAfterSeconds,
  })
}

/** The same error in the SDK's class. */
export function errorOfCoded(error: CodedError): SandglassError {
  return new SandglassError(error.code, error.message, { errors: error.context.errors, limit: error.context.limit, cause: error.context.cause })
}

/** Runs a contract parser over what a server sent. @throws SandglassError `internal` when the answer is not what the API describes */
export function parseAnswer<T>(parse: (value: unknown) => T, value: unknown, what: string): T {
  try {
    return parse(value)
  } catch (cause) {
    if (!(cause instanceof CodedError)) throw cause
    throw new SandglassError('internal', `The server's ${what} is not what the API describes: ${cause.message} Are client and server of the same version?`, {
      cause,
    })
  }
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
