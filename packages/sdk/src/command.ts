/** What to run: options of `exec`, `spawn` and `terminal` that are the same, and their form on the wire. */
import { checkCommand } from '@sandglass/contract/command'
import { CodedError } from '@sandglass/contract/errors'
import type { TerminalSize } from '@sandglass/contract/process'
import { base64OfBytes, bytesOfText } from './encoding.ts'
import { errorOfCoded, SandglassError } from './error.ts'
import type { Known } from './known-options.ts'

/** Program and arguments, never parsed by a shell. Bytes where an argument is not UTF-8. */
export type Argv = readonly (string | Uint8Array)[]

export type CommandOptions = {
  /** Absolute. Default: the sandbox's. */
  readonly cwd?: string | undefined
  /** Added to the sandbox's environment. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** A user of the sandbox, or a uid, or `uid:gid`. Default root. */
  readonly user?: string | undefined
  /** Milliseconds until the command and all its descendants are ended. Default: none. */
  readonly timeoutMs?: number | undefined
  /** Milliseconds between SIGTERM and SIGKILL at a timeout. Default 2,000. */
  readonly killGraceMs?: number | undefined
  /**
   * A repeat with the same key is the same process, also when that has ended: its old output, then its end. After it ends take a new key.
   * Default: a fresh one per call, so that the SDK's own repeats are safe.
   */
  readonly processKey?: string | undefined
}

/** What every call that runs a command takes. */
export const COMMAND_OPTIONS: Known<CommandOptions> = { cwd: true, env: true, user: true, timeoutMs: true, killGraceMs: true, processKey: true }

export type Program = { readonly argv: Argv } | { readonly shell: string }

export type WireCommand = {
  argv?: string[]
  argv_b64?: string[]
  shell?: string
  cwd?: string
  env?: Record<string, string>
  user?: string
  timeout_ms?: number
  kill_grace_ms?: number
  tty?: TerminalSize
}

/** @throws SandglassError `invalid_request` for what is no program */
function wireProgram(program: Program): Pick<WireCommand, 'argv' | 'argv_b64' | 'shell'> {
  if ('shell' in program) return { shell: program.shell }
  const { argv } = program
  // From plain JavaScript anything can come, most often a command line.
  if (!Array.isArray(argv)) {
    throw new SandglassError('invalid_request', "A program is a list of arguments, as in ['ls', '-l']; for a command line use exec.shell or { shell }.")
  }
  const texts = argv.filter((argument) => typeof argument === 'string')
  if (texts.length === argv.length) return { argv: texts }
  return { argv_b64: argv.map((argument) => base64OfBytes(typeof argument === 'string' ? bytesOfText(argument) : argument)) }
}

/** @throws SandglassError `invalid_request`, `limit_exceeded`: before anything is sent, so that it is the same whichever way it would go */
export function wireCommand(program: Program, options: CommandOptions): WireCommand {
  const command = wireProgram(program)
  try {
    checkCommand(command)
  } catch (error) {
    throw error instanceof CodedError ? errorOfCoded(error) : error
  }
  return {
    ...command,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
    ...(options.user === undefined ? {} : { user: options.user }),
    ...(options.timeoutMs === undefined ? {} : { timeout_ms: Math.ceil(options.timeoutMs) }),
    ...(options.killGraceMs === undefined ? {} : { kill_grace_ms: Math.ceil(options.killGraceMs) }),
  }
}

/** For error messages. */
export function describeProgram(program: Program): string {
  if ('shell' in program) return program.shell
  return program.argv.map((argument) => (typeof argument === 'string' ? argument : '<bytes>')).join(' ')
}
