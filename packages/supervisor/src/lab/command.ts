/** Runs a program of the machine to its end. */
import { spawnSync } from 'node:child_process'
import { CodedError } from '@sandglass/contract/errors'

const COMMAND_MS = 20_000

export type Ran = { readonly ok: boolean; readonly stdout: string; readonly stderr: string }

export function tryRun(command: readonly string[], input = ''): Ran {
  const [program = '', ...args] = command
  const { status, stdout, stderr, error } = spawnSync(program, args, { timeout: COMMAND_MS, encoding: 'utf8', input })
  const missing = error !== undefined && 'code' in error && error.code === 'ENOENT'
  return { ok: status === 0, stdout: stdout ?? '', stderr: missing ? `${program} is not installed` : (stderr ?? '') }
}

/** @throws CodedError `internal` with what it said */
export function run(command: readonly string[], input = ''): string {
  const { ok, stdout, stderr } = tryRun(command, input)
  if (!ok) throw new CodedError('internal', `${command.join(' ')}: ${stderr.trim() || 'failed'}`)
  return stdout
}
