/** A terminal: a process with a PTY. It lives in the sandbox, survives lost connections, and can be left and found again. */
import { CodedError } from '@sandglass/contract/errors'
import { type StartProcess, type TerminalSize, TerminalSizeSchema } from '@sandglass/contract/process'
import { parserOf } from '@sandglass/contract/schema'
import { COMMAND_OPTIONS, type CommandOptions, type Program, wireCommand } from './command.ts'
import type { DataPlane } from './data-plane.ts'
import { errorOfCoded, SandglassError } from './error.ts'
import { type Known, onlyKnown } from './known-options.ts'
import type { Gap } from './output-queue.ts'
import { OutputStream } from './output-stream.ts'
import { exitOf, getProcess, type ProcessExit } from './process.ts'
import { ProcessInput } from './process-input.ts'
import { DEFAULT_RECONNECT_MS, Session } from './session.ts'
import type { Opening } from './session-opening.ts'
import { signalProcess } from './signal-process.ts'
import { DEFAULT_WINDOW_BYTES } from './spawn.ts'

export type TerminalOptions = CommandOptions & {
  /** Default 80. */
  readonly cols?: number | undefined
  /** Default 24. */
  readonly rows?: number | undefined
  /** What runs in it. Default: the user's login shell. */
  readonly program?: Program | undefined
  /** Come back to this one instead of starting one: `pr…`, or `key:` and its process key. */
  readonly id?: string | undefined
  /** With `id`: offset of the first byte wanted. Default: the oldest that is kept (1 MiB). */
  readonly since?: number | undefined
  /** With `id`: from now on only this client types; others who do get `terminal_taken_over`. */
  readonly takeover?: boolean | undefined
  /** Called when output was lost because it was away for more than the ring holds. Reading goes on either way. */
  readonly onGap?: ((gap: Gap) => void) | undefined
  /** Milliseconds to look for lost contact. Default 60,000. */
  readonly reconnectMs?: number | undefined
}

const OPTIONS: Known<TerminalOptions> = {
  ...COMMAND_OPTIONS,
  cols: true,
  rows: true,
  program: true,
  id: true,
  since: true,
  takeover: true,
  onGap: true,
  reconnectMs: true,
}

const LOGIN_SHELL: Program = { shell: 'exec "$' + '{SHELL:-/bin/sh}" -l' }

const sizeParser = parserOf(TerminalSizeSchema)

export class Terminal {
  /** `pr…` */
  readonly id: string
  /** What it prints: bytes, in order, each once. */
  readonly output: OutputStream
  readonly #plane: DataPlane
  readonly #session: Session
  readonly #input: ProcessInput

  /** @internal */
  constructor(plane: DataPlane, id: string, session: Session, onGap: (gap: Gap) => void) {
    this.#plane = plane
    this.id = id
    this.#session = session
    this.#input = new ProcessInput(session.input)
    this.output = new OutputStream(session.stdout, { onGap })
  }

  /** Types. Resolves when it is on its way. @throws SandglassError `stdin_closed` when it has ended, `lost_contact` */
  write(data: string | Uint8Array): Promise<void> {
    return this.#input.write(data)
  }

  /** Sets its size, 1 to 1,000 each; programs in it get SIGWINCH. @throws SandglassError `invalid_request` */
  resize(cols: number, rows: number): void {
    this.#session.resize(checkedSize(cols, rows))
  }

  /** How it ended. @throws SandglassError `lost_contact`, `sandbox_ended` */
  get exit(): Promise<ProcessExit> {
    return this.#session.exit.then((process) => exitOf(process, this.#session.hasGaps))
  }

  /** Offset of the next byte that will come; give it as `since` when you come back. */
  get offset(): number {
    return this.#session.stdoutOffset
  }

  /** Leaves it running. Come back with `sandbox.terminal({ id, since })`. */
  detach(): void {
    this.#session.leave(new SandglassError('lost_contact', `This client left terminal ${this.id}; come back with its id.`))
  }

  /** Ends it with all that runs in it: SIGHUP as a closed line, then SIGKILL. */
  async close(): Promise<void> {
    for (const signal of ['HUP', 'KILL'] as const) {
      try {
        await signalProcess(this.#plane, this.id, signal, {})
      } catch (error) {
        if (error instanceof SandglassError && error.code === 'process_exited') return
        throw error
      }
    }
  }
}

/** Checked here, because a WebSocket that is refused does not say why. */
function checkedSize(cols: number, rows: number): TerminalSize {
  try {
    return sizeParser.parse({ cols, rows })
  } catch (error) {
    if (error instanceof CodedError) throw errorOfCoded(error)
    throw error
  }
}

export async function openTerminal(plane: DataPlane, options: TerminalOptions): Promise<Terminal> {
  onlyKnown('terminal', options, OPTIONS)
  const size = checkedSize(options.cols ?? 80, options.rows ?? 24)
  const opening = options.id === undefined ? newTerminal(plane, options, size) : await existingTerminal(plane, options.id, options)
  const session = new Session(plane, opening, { reconnectMs: options.reconnectMs ?? DEFAULT_RECONNECT_MS, windowBytes: DEFAULT_WINDOW_BYTES })
  session.stderr.discard()
  // A terminal that is there keeps its size unless the caller names one.
  if (options.id === undefined || options.cols !== undefined || options.rows !== undefined) session.resize(size)
  const process = await session.open()
  return new Terminal(plane, process.id, session, options.onGap ?? (() => undefined))
}

/** The gateway knows login shells; everything else is a start like any other, with a terminal. */
function newTerminal(plane: DataPlane, options: TerminalOptions, tty: TerminalSize): Opening {
  const key = options.processKey ?? plane.transport.world.newKey()
  const { program, env, timeoutMs, killGraceMs, user, cwd } = options
  if (program === undefined && env === undefined && timeoutMs === undefined && killGraceMs === undefined) {
    return { type: 'terminal', id: undefined, since: 0, takesOver: false, shell: { key, user, cwd } }
  }
  const process: StartProcess & { key: string } = { ...wireCommand(program ?? LOGIN_SHELL, options), tty, stdin: true, key }
  return { type: 'start', process, killOnDisconnect: false }
}

async function existingTerminal(plane: DataPlane, idOrKey: string, { since, takeover = false }: TerminalOptions): Promise<Opening> {
  const { resource } = await getProcess(plane, idOrKey, {})
  if (!resource.tty) throw new SandglassError('not_a_terminal', `Process ${idOrKey} has no terminal; read its output instead.`)
  return { type: 'terminal', id: resource.id, since: since ?? resource.stdout.start, takesOver: takeover, shell: { key: '' } }
}
