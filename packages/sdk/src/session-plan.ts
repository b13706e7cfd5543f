/** What the end of a connection means for a session, as pure functions. */

import type { ErrorCode } from '@sandglass/contract/errors'
import { CLOSE_CODE } from '@sandglass/contract/gateway-frames'
import { docsOf, SandglassError } from './error.ts'

/** A refusal ends the session; everything else is contact that was lost and may be found again. */
const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  [CLOSE_CODE.policy]: 'forbidden',
  [CLOSE_CODE.malformed]: 'malformed_frame',
  [CLOSE_CODE.unauthenticated]: 'unauthenticated',
  [CLOSE_CODE.revoked]: 'session_revoked',
  [CLOSE_CODE.notFound]: 'process_not_found',
  [CLOSE_CODE.conflict]: 'sandbox_not_ready',
  [CLOSE_CODE.ended]: 'sandbox_ended',
  [CLOSE_CODE.takenOver]: 'terminal_taken_over',
}

export function refusalOf(closeCode: number, reason: string, apiUrl: string): SandglassError | undefined {
  const code = REFUSALS[closeCode]
  return code === undefined ? undefined : new SandglassError(code, reason === '' ? undefined : reason, { docs: docsOf(apiUrl, code) })
}

const FINAL_WHILE_RETRYABLE: ReadonlySet<ErrorCode> = new Set(['process_limit', 'too_many_sessions', 'quota_exceeded'])

/** Does this error end the session, or is it contact that may be found again? */
export function isFinal(error: SandglassError): boolean {
  return !error.retryable || FINAL_WHILE_RETRYABLE.has(error.code)
}

const BASE_DELAY_MS = 50
const MAX_DELAY_MS = 2_000

/**
 * @param attempt how many attempts have failed since contact was lost
 * @param lostForMs milliseconds since contact was lost
 * @returns milliseconds to wait before the next attempt, or undefined: give up
 */
export function planReconnect(attempt: number, lostForMs: number, budgetMs: number, random: number): number | undefined {
  if (lostForMs >= budgetMs) return undefined
  return random * Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** Math.min(attempt, 10))
}
