/** A process in a sandbox, as any client can come back to it by id. */
import { ProcessListSchema, type Exec as WireExec, type Process as WireProcess } from '@sandglass/contract/process'
import { parserOf } from '@sandglass/contract/schema'
import { COMMAND_OPTIONS, type CommandOptions, type Program, wireCommand } from './command.ts'
import type { DataPlane } from './data-plane.ts'
import { type Known, onlyKnown } from './known-options.ts'
import { type OutputOptions, readOutput } from './process-output.ts'
import { processParser, type SignalName, type SignalOptions, signalProcess } from './signal-process.ts'
import type { CallOptions } from './transport.ts'

const START_OPTIONS: Known<CommandOptions & CallOptions> = { ...COMMAND_OPTIONS, signal: true }

const listParser = parserOf(ProcessListSchema)

/** How a process ended. */
export type ProcessExit = {
  /** Null when a signal ended it. */
  readonly exitCode: number | null
  /** Name without `SIG`, when a signal ended it. */
  readonly signal: string | null
  /** Its `timeoutMs` passed and it was ended. */
  readonly timedOut: boolean
  readonly durationMs: number
  /** Some output did not reach this reader: it was no longer kept when contact was found again. */
  readonly truncated: boolean
  /** A descendant still holds its output open. */
  readonly outputOpen: boolean
}

export function exitOf(process: WireProcess, truncated: boolean): ProcessExit {
  return {
    exitCode: process.exit_code,
    signal: process.signal,
    timedOut: process.timed_out,
    durationMs: process.duration_ms ?? 0,
    truncated,
    outputOpen: process.output_open,
  }
}

export class RemoteProcess {
  readonly #plane: DataPlane
  #resource: WireProcess

  /** @internal */
  constructor(plane: DataPlane, resource: WireProcess) {
    this.#plane = plane
    this.#resource = resource
  }

  /** `pr…`; never a pid. */
  get id(): string {
    return this.#resource.id
  }

  /** The API's object as it was last read, with the API's own field names. */
  get resource(): WireProcess {
    return this.#resource
  }

  get running(): boolean {
    return this.#resource.state === 'running'
  }

  /** Reads it again. @throws SandglassError `process_not_found` */
  async refresh(options: CallOptions = {}): Promise<this> {
    this.#resource = (await getProcess(this.#plane, this.id, options)).resource
    return this
  }

  /** Sends a signal to it and, unless `tree: false`, to all its descendants. @throws SandglassError `process_exited` */
  async signal(name: SignalName, options: SignalOptions = {}): Promise<void> {
    this.#resource = await signalProcess(this.#plane, this.id, name, options)
  }

  /** SIGKILL for it and all its descendants. @throws SandglassError `process_exited` */
  kill(options: CallOptions = {}): Promise<void> {
    return this.signal('KILL', options)
  }

  /** Sets the size of its terminal, 1 to 1,000 each. @throws SandglassError `not_a_terminal`, `process_exited` */
  async resize(cols: number, rows: number, options: CallOptions = {}): Promise<void> {
    const url = `${this.#plane.base}/processes/${encodeURIComponent(this.id)}/resize`
    this.#resource = await this.#plane.transport.json({ ...options, method: 'POST', url, json: { cols, rows }, repeatable: true }, processParser)
  }

  /**
   * Exact bytes of one stream from an offset on. A lost connection is taken up again where it broke.
   * @throws SandglassError `output_gone` when bytes are no longer kept and no `onGap` was given
   */
  output(options: OutputOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    return readOutput(this.#plane, this.id, options)
  }
}

export async function getProcess(plane: DataPlane, idOrKey: string, options: CallOptions): Promise<RemoteProcess> {
  const url = `${plane.base}/processes/${encodeURIComponent(idOrKey)}`
  return new RemoteProcess(plane, await plane.transport.json({ ...options, method: 'GET', url, repeatable: true }, processParser))
}

export async function listProcesses(plane: DataPlane, options: CallOptions): Promise<RemoteProcess[]> {
  const { items } = await plane.transport.json({ ...options, method: 'GET', url: `${plane.base}/processes`, repeatable: true }, listParser)
  return items.map((item) => new RemoteProcess(plane, item))
}

/** `timeoutMs` is the process's own, as everywhere in a command's options; starting it has the usual limit of a call. */
export async function startProcess(plane: DataPlane, program: Program, options: CommandOptions & CallOptions): Promise<RemoteProcess> {
  onlyKnown('start', options, START_OPTIONS)
  const body: WireExec = { ...wireCommand(program, options), process_key: options.processKey ?? plane.transport.world.newKey(), background: true }
  const resource = await plane.transport.json(
    { method: 'POST', url: `${plane.base}/exec`, headers: { accept: 'application/json' }, json: body, repeatable: true, signal: options.signal },
    processParser,
  )
  return new RemoteProcess(plane, resource)
}
