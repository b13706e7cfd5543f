/**
 * Exit codes: the command's own; 124 it timed out, 125 Sandglass refused or failed (also a command line that was not understood),
 * 126 it cannot be executed, 127 it was not found, 128+n signal n ended it. As Docker and coreutils do.
 */
import { constants } from 'node:os'
import type { ErrorCode } from '@sandglass/contract/errors'

export const EXIT = { timedOut: 124, refused: 125, notExecutable: 126, notFound: 127 } as const

const SIGNAL_NUMBERS: ReadonlyMap<string, number> = new Map(Object.entries(constants.signals))

/** @param name without `SIG` */
export function exitCodeOfSignal(name: string): number {
  return 128 + (SIGNAL_NUMBERS.get(`SIG${name}`) ?? 0)
}

export function exitCodeOfExit(exit: { readonly exitCode: number | null; readonly signal: string | null; readonly timedOut: boolean }): number {
  if (exit.timedOut) return EXIT.timedOut
  if (exit.signal !== null) return exitCodeOfSignal(exit.signal)
  return exit.exitCode ?? EXIT.refused
}

export function exitCodeOfError(code: ErrorCode): number {
  if (code === 'process_timed_out') return EXIT.timedOut
  if (code === 'executable_not_runnable') return EXIT.notExecutable
  if (code === 'executable_not_found') return EXIT.notFound
  return EXIT.refused
}
