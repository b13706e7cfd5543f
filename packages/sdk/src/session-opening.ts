/** What a session says when it opens a connection, the first or a later one, as pure functions of what it has by then. */
import type { ClientFrame, ClientStatus } from '@sandglass/contract/gateway-frames'
import { LIMITS } from '@sandglass/contract/limits'
import type { StartProcess, TerminalSize, Process as WireProcess } from '@sandglass/contract/process'
import { SandglassError } from './error.ts'

export type Opening =
  | { readonly type: 'start'; readonly process: StartProcess & { readonly key: string }; readonly killOnDisconnect: boolean }
  | { readonly type: 'attach'; readonly processId: string; readonly sinceStdout: number; readonly sinceStderr: number; readonly stdin: boolean }
  /** A terminal: a new shell, named by its key, or with `id` one that is there. */
  | { readonly type: 'terminal'; readonly id: string | undefined; readonly since: number; readonly takesOver: boolean; readonly shell: NewShell }

/** What only a new shell takes. */
export type NewShell = { readonly key: string; readonly user?: string | undefined; readonly cwd?: string | undefined }

/** Where a session stands. */
export type Standing = {
  /** Undefined until it was found once. */
  readonly process: WireProcess | undefined
  /** Bytes that came. */
  readonly stdout: number
  readonly stderr: number
  /** The same over all connections of one session, and no other's. */
  readonly writer: string
  /** Where input goes on; undefined when none was written. */
  readonly resumeInputAt: number | undefined
  readonly creditBytes: number
}

/** What to say to who writes into a session that does not. */
const NO_INPUT = {
  attach: 'This client only reads the process: attach with `stdin: true` to write to it as well.',
  start: 'The process was started without standard input: spawn it with `stdin: true` to write to it.',
  terminal: undefined,
} as const

export const noInput = ({ type }: Opening): SandglassError => new SandglassError('stdin_closed', NO_INPUT[type])

export const tooLong = (): SandglassError =>
  new SandglassError('limit_exceeded', `A command with its environment has at most ${LIMITS.controlFrameBytes} bytes here. Write what is long to a file.`, {
    limit: { name: 'controlFrameBytes', value: LIMITS.controlFrameBytes },
  })

/** Does the session write to its process? */
export function writes(opening: Opening): boolean {
  if (opening.type === 'attach') return opening.stdin
  return opening.type === 'terminal' || opening.process.stdin === true || opening.process.tty !== undefined
}

/** Path and query below the sandbox. */
export function pathOf(opening: Opening, { process, stdout }: Standing, size: TerminalSize | undefined): string {
  if (opening.type !== 'terminal') return '/exec'
  const id = process?.id ?? opening.id
  const query = new URLSearchParams(size === undefined ? {} : { cols: String(size.cols), rows: String(size.rows) })
  if (id !== undefined) {
    query.set('id', id)
    query.set('since', String(stdout))
    // Once: who was taken over meanwhile must not take it back by coming back.
    if (opening.takesOver && process === undefined) query.set('takeover', '1')
    return `/terminal?${query}`
  }
  for (const [name, value] of Object.entries(opening.shell)) if (value !== undefined) query.set(name, value)
  return `/terminal?${query}`
}

export function firstFrame(opening: Opening, standing: Standing): ClientFrame {
  const { process, creditBytes } = standing
  // What a terminal is stands in its URL.
  if (opening.type === 'terminal') return { channel: 'credit', bytes: creditBytes }
  if (process === undefined && opening.type === 'start') {
    const kill = opening.killOnDisconnect ? { kill_on_disconnect: true } : {}
    return { channel: 'status', status: { type: 'start', process: opening.process, credit_bytes: creditBytes, ...kill, ...writing(opening, standing) } }
  }
  const status: ClientStatus = {
    type: 'attach',
    process_id: process?.id ?? (opening.type === 'attach' ? opening.processId : `key:${opening.process.key}`),
    credit_bytes: creditBytes,
    since_stdout: standing.stdout,
    since_stderr: standing.stderr,
    stdin: writes(opening),
    ...writing(opening, standing),
  }
  return { channel: 'status', status }
}

/** Who writes, and from where on again. */
function writing(opening: Opening, { process, writer, resumeInputAt }: Standing): { writer?: string; stdin_offset?: number } {
  const isTerminal = process?.tty === true || (opening.type === 'start' && opening.process.tty !== undefined)
  if (!writes(opening) || isTerminal) return {}
  return { writer, ...(process === undefined || resumeInputAt === undefined ? {} : { stdin_offset: resumeInputAt }) }
}
