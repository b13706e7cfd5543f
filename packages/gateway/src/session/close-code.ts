/** Which close code of the WebSocket an error becomes. The status frame before it says more. */
import { CLOSE_CODE, type CodedError, type ErrorCode } from '@sandglass/contract'

const BY_CODE: { readonly [Code in ErrorCode]?: number } = {
  malformed_frame: CLOSE_CODE.malformed,
  unauthenticated: CLOSE_CODE.unauthenticated,
  forbidden: CLOSE_CODE.revoked,
  session_revoked: CLOSE_CODE.revoked,
  terminal_taken_over: CLOSE_CODE.takenOver,
  sandbox_ended: CLOSE_CODE.ended,
  sandbox_stopped: CLOSE_CODE.ended,
  sandbox_failed: CLOSE_CODE.ended,
  lost_contact: CLOSE_CODE.lostContact,
  client_timeout: CLOSE_CODE.policy,
  limit_exceeded: CLOSE_CODE.policy,
}

export function closeCodeOf(error: CodedError): number {
  const code = BY_CODE[error.code]
  if (code !== undefined) return code
  switch (error.status) {
    case 404:
      return CLOSE_CODE.notFound
    case 409:
      return CLOSE_CODE.conflict
    case 429:
    case 503:
      return CLOSE_CODE.tryAgain
    case 500:
    case 502:
      return CLOSE_CODE.internal
    default:
      return error.status < 500 ? CLOSE_CODE.policy : CLOSE_CODE.internal
  }
}
