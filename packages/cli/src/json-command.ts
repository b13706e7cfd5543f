/** `--json` of a command in a sandbox: its result as the API gives it, instead of its streams. */
import type { ExecResult as WireExecResult } from '@sandglass/contract/process'
import { type Argv, type ExecOptions, type ExecResult, type Sandbox, SandglassError } from '@sandglass/sdk'
import { exitCodeOfExit } from './exit-code.ts'
import type { Io } from './io.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function encoded(bytes: Uint8Array): { text: string; encoding: 'utf-8' | 'base64' } {
  try {
    return { text: utf8.decode(bytes), encoding: 'utf-8' }
  } catch {
    return { text: Buffer.from(bytes).toString('base64'), encoding: 'base64' }
  }
}

function wireOf(result: ExecResult): WireExecResult {
  const stdout = encoded(result.stdoutBytes)
  const stderr = encoded(result.stderrBytes)
  return {
    process_id: result.processId,
    exit_code: result.exitCode,
    signal: result.signal,
    stdout: stdout.text,
    stderr: stderr.text,
    encoding: { stdout: stdout.encoding, stderr: stderr.encoding },
    truncated: result.truncated,
    timed_out: result.timedOut,
    output_open: result.outputOpen,
    duration_ms: result.durationMs,
  }
}

/** @returns the exit code to pass on. @throws SandglassError, after printing what there is when the command timed out */
export async function runAsJson(io: Io, sandbox: Sandbox, argv: Argv, options: ExecOptions): Promise<number> {
  try {
    const result = await sandbox.exec(argv, options)
    await io.stdout.write(`${JSON.stringify(wireOf(result))}\n`)
    return exitCodeOfExit(result)
  } catch (error) {
    if (error instanceof SandglassError && error.result !== undefined) await io.stdout.write(`${JSON.stringify(wireOf(error.result))}\n`)
    throw error
  }
}
