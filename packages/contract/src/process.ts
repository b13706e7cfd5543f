/** Processes and terminals in a sandbox. A terminal is a process with a PTY: one record, one ring. */
import Type, { type Static } from 'typebox'
import { PATTERNS } from './forms.ts'
import { LIMITS } from './limits.ts'
import { EnvSchema } from './sandbox.ts'
import { closed, nullable, oneOf } from './schema.ts'

export const TerminalSizeSchema = closed({
  cols: Type.Integer({ minimum: 1, maximum: LIMITS.terminalColumns }),
  rows: Type.Integer({ minimum: 1, maximum: LIMITS.terminalRows }),
})
export type TerminalSize = Static<typeof TerminalSizeSchema>

export const PROCESS_KEY_PATTERN = PATTERNS.processKey

const commandFields = {
  argv: Type.Optional(
    Type.Array(Type.String({ pattern: PATTERNS.noNul }), {
      minItems: 1,
      maxItems: LIMITS.argvEntries,
      description: 'Program and arguments; never parsed by a shell.',
    }),
  ),
  argv_b64: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: LIMITS.argvEntries, description: 'The same as raw bytes, base64.' })),
  shell: Type.Optional(Type.String({ pattern: PATTERNS.noNul, maxLength: LIMITS.shellBytes, description: 'A command line for `bash -lc`, else `sh -c`.' })),
  cwd: Type.Optional(Type.String({ pattern: PATTERNS.absolutePath, maxLength: LIMITS.cwdBytes })),
  env: Type.Optional(EnvSchema),
  user: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.userCharacters })),
  tty: Type.Optional(TerminalSizeSchema),
  timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.processTimeoutMs })),
  kill_grace_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 60_000, description: 'Between SIGTERM and SIGKILL.' })),
}

/** What the guest agent takes to start a process. Exactly one of argv, argv_b64 and shell. */
export const StartProcessSchema = closed(
  {
    ...commandFields,
    stdin: Type.Optional(Type.Boolean({ description: 'Keep standard input open for writing; otherwise it is /dev/null.' })),
    key: Type.Optional(Type.String({ pattern: PROCESS_KEY_PATTERN, description: 'A repeat with the same key is the same process.' })),
  },
  { $id: 'StartProcess' },
)
export type StartProcess = Static<typeof StartProcessSchema>

/** Body of POST …/exec. Exactly one of argv, argv_b64 and shell. */
export const ExecSchema = closed(
  {
    ...commandFields,
    stdin: Type.Optional(Type.Union([Type.String(), Type.Boolean()], { description: 'A string: fed, then EOF. true: kept open for POST …/stdin.' })),
    stdin_encoding: Type.Optional(oneOf(['utf-8', 'base64'])),
    process_key: Type.Optional(Type.String({ pattern: PROCESS_KEY_PATTERN })),
    background: Type.Optional(Type.Boolean({ description: 'Answer as soon as it has started.' })),
    kill_on_disconnect: Type.Optional(Type.Boolean()),
  },
  { $id: 'Exec' },
)
export type Exec = Static<typeof ExecSchema>

const WindowSchema = closed({ start: Type.Integer({ minimum: 0 }), end: Type.Integer({ minimum: 0 }) })

export const ProcessSchema = closed(
  {
    id: Type.String(),
    key: nullable(Type.String()),
    argv: Type.Array(Type.String()),
    cwd: Type.String(),
    user: Type.String(),
    tty: Type.Boolean(),
    state: oneOf(['running', 'exited']),
    pid: Type.Integer({ description: 'Inside the sandbox; informational.' }),
    exit_code: nullable(Type.Integer()),
    signal: nullable(Type.String({ description: 'Name without SIG, when a signal ended it.' })),
    timed_out: Type.Boolean(),
    started_at_ms: Type.Integer(),
    ended_at_ms: nullable(Type.Integer()),
    duration_ms: nullable(Type.Integer()),
    stdout: WindowSchema,
    stderr: WindowSchema,
    stdin: closed({ accepted: Type.Integer({ minimum: 0 }), open: Type.Boolean() }),
    output_open: Type.Boolean({ description: 'It exited, but a descendant still holds its output.' }),
    truncated: Type.Boolean({ description: 'Some output is no longer in the window.' }),
    cpu_ms: Type.Integer(),
    memory_bytes: Type.Integer(),
    cols: nullable(Type.Integer()),
    rows: nullable(Type.Integer()),
  },
  { $id: 'Process' },
)
export type Process = Static<typeof ProcessSchema>

export const ProcessListSchema = closed({ items: Type.Array(ProcessSchema) }, { $id: 'ProcessList' })

/** Answer of POST …/exec with `Accept: application/json`. */
export const ExecResultSchema = closed(
  {
    process_id: Type.String(),
    exit_code: nullable(Type.Integer()),
    signal: nullable(Type.String()),
    stdout: Type.String(),
    stderr: Type.String(),
    encoding: closed({
      stdout: oneOf(['utf-8', 'base64']),
      stderr: oneOf(['utf-8', 'base64']),
    }),
    truncated: Type.Boolean({ description: 'Output beyond the answer’s limit was left out; read it with GET …/output.' }),
    timed_out: Type.Boolean(),
    output_open: Type.Boolean(),
    duration_ms: Type.Integer(),
  },
  { $id: 'ExecResult' },
)
export type ExecResult = Static<typeof ExecResultSchema>

export const SIGNALS = ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'CONT', 'STOP', 'WINCH'] as const
export const SignalProcessSchema = closed(
  {
    signal: oneOf(SIGNALS),
    tree: Type.Optional(Type.Boolean({ description: 'Also all its descendants. Default true.' })),
  },
  { $id: 'SignalProcess' },
)
export type SignalProcess = Static<typeof SignalProcessSchema>

export const StdinAcceptedSchema = closed({ accepted: Type.Integer({ minimum: 0 }), open: Type.Boolean() }, { $id: 'StdinAccepted' })
export type StdinAccepted = Static<typeof StdinAcceptedSchema>
