/** From whatever was thrown to one line on standard error and an exit code. */
import type { ErrorCode } from '@sandglass/contract/errors'
import { withAdvice } from './advice.ts'
import { EXIT, exitCodeOfError, exitCodeOfSignal } from './exit-code.ts'
import { ReaderGone } from './output-pipe.ts'
import { plain } from './text.ts'
import { UsageError } from './usage-error.ts'

export type Failure = { readonly line: string | undefined; readonly exitCode: number }

/** By shape, so that a usage error does not have to load the SDK. */
function isCoded(error: unknown): error is Error & { readonly code: ErrorCode } {
  return error instanceof Error && (error.name === 'SandglassError' || error.name === 'CodedError') && 'code' in error && typeof error.code === 'string'
}

/** A sentence in the middle of a line: `No host can fit` becomes `no host can fit`, names and codes stay. */
function lowered(sentence: string): string {
  return /^[A-Z][a-z ]/.test(sentence) ? sentence.charAt(0).toLowerCase() + sentence.slice(1) : sentence
}

function systemText(error: Error): string {
  return error.message === '' ? error.name : error.message
}

export function failureOf(error: unknown): Failure {
  if (error instanceof ReaderGone) return { line: undefined, exitCode: exitCodeOfSignal('PIPE') }
  if (error instanceof UsageError) return { line: `sandglass: ${plain(error.message)} (see --help)`, exitCode: EXIT.refused }
  if (isCoded(error))
    return { line: `sandglass: ${plain(lowered(withAdvice(error.code, error.message)))} [${error.code}]`, exitCode: exitCodeOfError(error.code) }
  // Files of this machine, for example: the system's own words are the best there are.
  return { line: `sandglass: ${plain(error instanceof Error ? systemText(error) : String(error))}`, exitCode: EXIT.refused }
}
