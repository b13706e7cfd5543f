/** What a finished command gave. */
import type { ExecResult as WireExecResult } from '@sandglass/contract/process'
import { bytesOfBase64, bytesOfText, textOfBytes } from './encoding.ts'

export type ExecResult = {
  /** `pr…`; its record and the end of its output can be read for a while. */
  readonly processId: string
  /** Null when a signal ended it. */
  readonly exitCode: number | null
  /** Name without `SIG`, when a signal ended it. */
  readonly signal: string | null
  /** Standard output as UTF-8; bytes that are not UTF-8 become U+FFFD. */
  readonly stdout: string
  /** Standard error as UTF-8. */
  readonly stderr: string
  /** The exact bytes of standard output. */
  readonly stdoutBytes: Uint8Array
  /** The exact bytes of standard error. */
  readonly stderrBytes: Uint8Array
  /** Output was longer than LIMITS.execJsonOutputBytes (8 MiB); use `spawn` for more. */
  readonly truncated: boolean
  readonly timedOut: boolean
  /** The command exited, but a background child still holds its output open. */
  readonly outputOpen: boolean
  readonly durationMs: number
}

export function execResultOf(wire: WireExecResult): ExecResult {
  const stdoutBytes = wire.encoding.stdout === 'base64' ? bytesOfBase64(wire.stdout) : bytesOfText(wire.stdout)
  const stderrBytes = wire.encoding.stderr === 'base64' ? bytesOfBase64(wire.stderr) : bytesOfText(wire.stderr)
  return {
    processId: wire.process_id,
    exitCode: wire.exit_code,
    signal: wire.signal,
    stdout: wire.encoding.stdout === 'base64' ? textOfBytes(stdoutBytes) : wire.stdout,
    stderr: wire.encoding.stderr === 'base64' ? textOfBytes(stderrBytes) : wire.stderr,
    stdoutBytes,
    stderrBytes,
    truncated: wire.truncated,
    timedOut: wire.timed_out,
    outputOpen: wire.output_open,
    durationMs: wire.duration_ms,
  }
}
