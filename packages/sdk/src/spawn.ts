/** Starting a process and staying joined to its streams. */
import type { StartProcess, Process as WireProcess } from '@sandglass/contract/process'
import { COMMAND_OPTIONS, type CommandOptions, type Program, wireCommand } from './command.ts'
import type { DataPlane } from './data-plane.ts'
import { SandglassError } from './error.ts'
import { type Known, onlyKnown } from './known-options.ts'
import type { Gap } from './output-queue.ts'
import { OutputStream } from './output-stream.ts'
import { exitOf, getProcess, type ProcessExit, RemoteProcess } from './process.ts'
import { type InputSource, ProcessInput } from './process-input.ts'
import { DEFAULT_RECONNECT_MS, Session } from './session.ts'
import type { Opening } from './session-opening.ts'
import { signalProcess } from './signal-process.ts'

export type StreamOptions = {
  /** Called when bytes of a stream were lost; without it that stream throws `output_gone`. */
  readonly onGap?: ((stream: 'stdout' | 'stderr', gap: Gap) => void) | undefined
  /** Milliseconds to look for lost contact before the streams and `exit` fail with `lost_contact`. Default 60,000. */
  readonly reconnectMs?: number | undefined
  /** Bytes that may wait here for their reader before the process is held back. Default 1 MiB. */
  readonly windowBytes?: number | undefined
}

export type SpawnOptions = CommandOptions &
  StreamOptions & {
    /** `true`: write to `stdin`, and close it. A source: fed, then end of file. Absent: the process reads end of file at once. */
    readonly stdin?: boolean | InputSource | undefined
    /** `ignore`: drop it, so that the process never waits for you to read it. Default `pipe`. */
    readonly stdout?: 'pipe' | 'ignore' | undefined
    readonly stderr?: 'pipe' | 'ignore' | undefined
    /** End the process when this client's connection goes away. There is no coming back then. Default false. */
    readonly killOnDisconnect?: boolean | undefined
    /** Ends the process with all its descendants; streams and `exit` then fail with the signal's reason. */
    readonly signal?: AbortSignal | undefined
  }

export type AttachOptions = StreamOptions & {
  /** Offset of the first byte wanted. Default: the oldest that is kept. */
  readonly sinceStdout?: number | undefined
  readonly sinceStderr?: number | undefined
  /** Also write to its standard input, where it was kept open. Who has written before and writes again then gets `stdin_offset`. Default false. */
  readonly stdin?: boolean | undefined
}

const OPTIONS: Known<SpawnOptions> = {
  ...COMMAND_OPTIONS,
  onGap: true,
  reconnectMs: true,
  windowBytes: true,
  stdin: true,
  stdout: true,
  stderr: true,
  killOnDisconnect: true,
  signal: true,
}

const ATTACH_OPTIONS: Known<AttachOptions> = { onGap: true, reconnectMs: true, windowBytes: true, sinceStdout: true, sinceStderr: true, stdin: true }

const STOP_TIMEOUT_MS = 5_000
export const DEFAULT_WINDOW_BYTES = 1024 * 1024

/** A process with its streams. Read both, or `ignore` one: 1 MiB waits here, then it is held back. Leaving it (`detach`) does not end it. */
export class Spawned extends RemoteProcess {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly stdin: ProcessInput
  readonly #session: Session

  /** @internal */
  constructor(plane: DataPlane, resource: WireProcess, session: Session, options: StreamOptions) {
    super(plane, resource)
    this.#session = session
    const onGap = options.onGap
    this.stdout = new OutputStream(session.stdout, onGap === undefined ? {} : { onGap: (gap) => onGap('stdout', gap) })
    this.stderr = new OutputStream(session.stderr, onGap === undefined ? {} : { onGap: (gap) => onGap('stderr', gap) })
    this.stdin = new ProcessInput(session.input)
  }

  /**
   * How it ended, once it has exited and all its output has come here. Output beyond `windowBytes` that nobody reads keeps it from coming.
   * A timeout is part of the result.
   * @throws SandglassError `lost_contact`, `sandbox_ended`
   */
  get exit(): Promise<ProcessExit> {
    return this.#session.exit.then((process) => exitOf(process, this.#session.hasGaps))
  }

  /** Offset of the next byte of standard output that will come. */
  get stdoutOffset(): number {
    return this.#session.stdoutOffset
  }

  /** Leaves the process alone; it goes on, and can be found again by its id. */
  detach(): void {
    this.#session.leave(new SandglassError('lost_contact', `This client left ${this.id}; attach again with its id.`))
  }
}

export async function spawnProcess(plane: DataPlane, program: Program, options: SpawnOptions): Promise<Spawned> {
  onlyKnown('spawn', options, OPTIONS)
  options.signal?.throwIfAborted()
  const key = options.processKey ?? plane.transport.world.newKey()
  const stdin = options.stdin !== undefined && options.stdin !== false
  const process: StartProcess & { key: string } = { ...wireCommand(program, options), key, ...(stdin ? { stdin: true } : {}) }
  const killOnDisconnect = options.killOnDisconnect ?? false
  const session = new Session(
    plane,
    { type: 'start', process, killOnDisconnect },
    { reconnectMs: killOnDisconnect ? 0 : (options.reconnectMs ?? DEFAULT_RECONNECT_MS), windowBytes: options.windowBytes ?? DEFAULT_WINDOW_BYTES },
  )
  if (options.stdout === 'ignore') session.stdout.discard()
  if (options.stderr === 'ignore') session.stderr.discard()
  if (options.signal !== undefined) stopOnAbort(plane, session, key, options.signal)
  const spawned = new Spawned(plane, await session.open(), session, options)
  const source = options.stdin
  if (source !== undefined && typeof source !== 'boolean') feed(spawned.stdin, session, source)
  return spawned
}

export async function attachProcess(plane: DataPlane, idOrKey: string, options: AttachOptions): Promise<Spawned> {
  onlyKnown('attach', options, ATTACH_OPTIONS)
  const { resource } = await getProcess(plane, idOrKey, {})
  const opening: Opening = {
    type: 'attach',
    processId: resource.id,
    sinceStdout: options.sinceStdout ?? resource.stdout.start,
    sinceStderr: options.sinceStderr ?? resource.stderr.start,
    stdin: options.stdin ?? false,
  }
  const session = new Session(plane, opening, {
    reconnectMs: options.reconnectMs ?? DEFAULT_RECONNECT_MS,
    windowBytes: options.windowBytes ?? DEFAULT_WINDOW_BYTES,
  })
  return new Spawned(plane, await session.open(), session, options)
}

/** A source that fails ends the session with that error; a process that stops reading its input is its own business. */
function feed(input: ProcessInput, session: Session, source: InputSource): void {
  input.feed(source).catch((error: unknown) => {
    if (!(error instanceof SandglassError) || error.code !== 'stdin_closed') session.leave(error)
  })
}

function stopOnAbort(plane: DataPlane, session: Session, key: string, signal: AbortSignal): void {
  const stop = () => {
    session.leave(signal.reason)
    // It may have ended, or be out of reach: its own timeout or the sandbox's deadline ends it then.
    signalProcess(plane, `key:${key}`, 'KILL', { timeoutMs: STOP_TIMEOUT_MS }).catch(() => undefined)
  }
  signal.addEventListener('abort', stop, { once: true })
  session.exit.finally(() => signal.removeEventListener('abort', stop)).catch(() => undefined)
}
