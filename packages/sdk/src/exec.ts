/**
 * Running a command to its end. One HTTP request; its process key makes a repeat after a lost answer join the same process.
 * Input that is large or a stream goes over a session instead, where it flows with back-pressure.
 */
import { LIMITS } from '@sandglass/contract/limits'
import { ExecResultSchema, type Exec as WireExec } from '@sandglass/contract/process'
import { parserOf } from '@sandglass/contract/schema'
import { type Argv, COMMAND_OPTIONS, type CommandOptions, describeProgram, type Program, wireCommand } from './command.ts'
import type { DataPlane } from './data-plane.ts'
import { base64OfBytes, bytesOfText } from './encoding.ts'
import { SandglassError } from './error.ts'
import { type ExecResult, execResultOf } from './exec-result.ts'
import { type Known, onlyKnown } from './known-options.ts'
import type { InputSource } from './process-input.ts'
import { PATIENT_POLICY } from './retry.ts'
import { signalProcess } from './signal-process.ts'
import { spawnAndCollect } from './spawn-collect.ts'

export type ExecOptions = CommandOptions & {
  /** Fed to the command, then end of file. Absent: the command reads end of file at once. */
  readonly stdin?: InputSource | undefined
  /** Makes an exit code other than 0, or death by a signal, a `command_failed` error. */
  readonly check?: boolean | undefined
  /** Ends the command with all its descendants; the call then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** `sandbox.exec(argv)`, and `sandbox.exec.shell(line)` for those who want a shell. */
export type Exec = {
  /**
   * Runs a program to its end. An exit code other than 0 is a result, not an error.
   * @throws SandglassError `process_timed_out` (with `result`), `command_failed` (with `check`), `executable_not_found`, `executable_not_runnable`,
   * `cwd_not_found`, `user_not_found`, `sandbox_ended`, `lost_contact`
   */
  (argv: Argv, options?: ExecOptions): Promise<ExecResult>
  /** The same with a line for `bash -lc`, or `sh -c` where there is no bash. */
  shell(line: string, options?: ExecOptions): Promise<ExecResult>
}

const OPTIONS: Known<ExecOptions> = { ...COMMAND_OPTIONS, stdin: true, check: true, signal: true }

const resultParser = parserOf(ExecResultSchema)
/** Beyond the command's own timeout: for the grace before SIGKILL, the drain of output, and the way back. */
const ANSWER_MARGIN_MS = 20_000
const STOP_TIMEOUT_MS = 5_000

export function execOf(plane: DataPlane): Exec {
  return Object.assign((argv: Argv, options: ExecOptions = {}) => run(plane, { argv }, options), {
    shell: (line: string, options: ExecOptions = {}) => run(plane, { shell: line }, options),
  })
}

async function run(plane: DataPlane, program: Program, options: ExecOptions): Promise<ExecResult> {
  onlyKnown('exec', options, OPTIONS)
  options.signal?.throwIfAborted()
  const input = smallInput(options.stdin)
  const result = input === 'large' ? await spawnAndCollect(plane, program, options) : await post(plane, program, options, input)
  return judge(program, options, result)
}

/** The input as part of a JSON body, if it can be. */
function smallInput(stdin: InputSource | undefined): Uint8Array | undefined | 'large' {
  if (stdin === undefined) return undefined
  if (typeof stdin !== 'string' && !(stdin instanceof Uint8Array)) return 'large'
  const bytes = typeof stdin === 'string' ? bytesOfText(stdin) : stdin
  return bytes.byteLength > LIMITS.execJsonStdinBytes ? 'large' : bytes
}

async function post(plane: DataPlane, program: Program, options: ExecOptions, input: Uint8Array | undefined): Promise<ExecResult> {
  const key = options.processKey ?? plane.transport.world.newKey()
  const body: WireExec = {
    ...wireCommand(program, options),
    process_key: key,
    ...(input === undefined ? {} : { stdin: base64OfBytes(input), stdin_encoding: 'base64' as const }),
  }
  try {
    const wire = await plane.transport.json(
      {
        method: 'POST',
        url: `${plane.base}/exec`,
        headers: { accept: 'application/json' },
        json: body,
        repeatable: true,
        retry: PATIENT_POLICY,
        signal: options.signal,
        timeoutMs: options.timeoutMs === undefined ? Number.POSITIVE_INFINITY : options.timeoutMs + (options.killGraceMs ?? 0) + ANSWER_MARGIN_MS,
      },
      resultParser,
    )
    return execResultOf(wire)
  } catch (error) {
    if (options.signal?.aborted) await stop(plane, key)
    throw error
  }
}

/** A cancelled command must not go on unseen. When it cannot be reached any more, the caller's reason still is what they should see. */
async function stop(plane: DataPlane, key: string): Promise<void> {
  try {
    await signalProcess(plane, `key:${key}`, 'KILL', { timeoutMs: STOP_TIMEOUT_MS })
  } catch (error) {
    if (!(error instanceof SandglassError)) throw error
  }
}

function judge(program: Program, options: ExecOptions, result: ExecResult): ExecResult {
  if (result.timedOut)
    throw new SandglassError('process_timed_out', `\`${describeProgram(program)}\` was ended after ${options.timeoutMs ?? result.durationMs} ms.`, { result })
  if (options.check === true && result.exitCode !== 0) {
    const how = result.signal === null ? `exited with ${result.exitCode}` : `was ended by SIG${result.signal}`
    throw new SandglassError('command_failed', `\`${describeProgram(program)}\` ${how}.${lastLine(result.stderr)}`, { result })
  }
  return result
}

const LAST_LINE_CHARACTERS = 200

function lastLine(text: string): string {
  const line = text.trimEnd().split('\n').at(-1)?.slice(0, LAST_LINE_CHARACTERS)
  return line === undefined || line === '' ? '' : ` Its last line of error output: ${line}`
}
