/** `exec` over a session, for input that is large or a stream. Output is kept to the same limit as in the one-request form. */
import { LIMITS } from '@sandglass/contract/limits'
import type { Program } from './command.ts'
import type { DataPlane } from './data-plane.ts'
import { concatBytes, textOfBytes } from './encoding.ts'
import type { ExecOptions } from './exec.ts'
import type { ExecResult } from './exec-result.ts'
import type { OutputStream } from './output-stream.ts'
import { spawnProcess } from './spawn.ts'

type Collected = { readonly bytes: Uint8Array; readonly truncated: boolean }

async function collect(stream: OutputStream): Promise<Collected> {
  const chunks: Uint8Array[] = []
  let size = 0
  let truncated = false
  for await (const chunk of stream) {
    const room = LIMITS.execJsonOutputBytes - size
    if (room > 0) chunks.push(chunk.subarray(0, room))
    size += chunk.byteLength
    truncated = size > LIMITS.execJsonOutputBytes
  }
  return { bytes: concatBytes(chunks), truncated }
}

export async function spawnAndCollect(plane: DataPlane, program: Program, options: ExecOptions): Promise<ExecResult> {
  const { check: _, ...rest } = options
  const spawned = await spawnProcess(plane, program, rest)
  const [stdout, stderr, exit] = await Promise.all([collect(spawned.stdout), collect(spawned.stderr), spawned.exit])
  return {
    processId: spawned.id,
    exitCode: exit.exitCode,
    signal: exit.signal,
    stdout: textOfBytes(stdout.bytes),
    stderr: textOfBytes(stderr.bytes),
    stdoutBytes: stdout.bytes,
    stderrBytes: stderr.bytes,
    truncated: stdout.truncated || stderr.truncated,
    timedOut: exit.timedOut,
    outputOpen: exit.outputOpen,
    durationMs: exit.durationMs,
  }
}
