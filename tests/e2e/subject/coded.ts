/** Assertions about errors with a code of the registry. */
import { AssertionError } from 'node:assert'
import { type ErrorCode, isErrorCode } from '@sandglass/contract'

/** The registry code that an error carries, or undefined. */
export function codeOf(error: unknown): ErrorCode | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return isErrorCode(error.code) ? error.code : undefined
}

/** An expected failure, made by a defect as the product would make it. */
export class Coded extends Error {
  readonly code: ErrorCode
  constructor(code: ErrorCode) {
    super(code)
    this.code = code
  }
}

/** Waits for a rejection with one of the codes. @throws AssertionError when it succeeds or fails otherwise */
export async function refused(what: string, codes: ErrorCode | readonly ErrorCode[], promise: Promise<unknown>): Promise<ErrorCode> {
  const wanted: readonly ErrorCode[] = typeof codes === 'string' ? [codes] : codes
  try {
    await promise
  } catch (error) {
    if (error instanceof AssertionError) throw error
    const code = codeOf(error)
    if (code !== undefined && wanted.includes(code)) return code
    const failure = new AssertionError({
      message: `${what} failed with ${code ?? `an error without a code (${String(error)})`}, not with ${wanted.join(' or ')}.`,
    })
    failure.cause = error
    throw failure
  }
  throw new AssertionError({ message: `${what} succeeded; it must be refused with ${wanted.join(' or ')}.` })
}
