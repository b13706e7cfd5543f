/** The exit code of a joined command, which this process passes on. */
import { type ProcessExit, SandglassError } from '@sandglass/sdk'
import { exitCodeOfExit } from './exit-code.ts'

/** @throws SandglassError `process_timed_out`: a timeout is told in words too, its number may be the command's own */
export function passedOn(exit: ProcessExit): number {
  if (exit.timedOut) {
    throw new SandglassError('process_timed_out', `The command was ended, with all that it had started, after ${(exit.durationMs / 1000).toFixed(1)} s.`)
  }
  return exitCodeOfExit(exit)
}
