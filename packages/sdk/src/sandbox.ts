/** A sandbox: an isolated machine. This class only joins its parts; each part is its own file. */

import { SandboxListSchema } from '@sandglass/contract/public-api'
import type { SandboxStatus, Sandbox as WireSandbox } from '@sandglass/contract/sandbox'
import { parserOf } from '@sandglass/contract/schema'
import { Sandglass } from './client.ts'
import type { Argv, CommandOptions } from './command.ts'
import { becomeReady, createReady, deleteSandbox, getSandbox, notReady, postSandbox, sandboxParser } from './create-sandbox.ts'
import { type DataPlane, dataPlaneOf } from './data-plane.ts'
import { SandglassError } from './error.ts'
import { type Exec, execOf } from './exec.ts'
import { Files } from './files.ts'
import { type Known, onlyKnown } from './known-options.ts'
import { Operation } from './operation.ts'
import { type ListOptions, listPages } from './pages.ts'
import { getProcess, listProcesses, type RemoteProcess, startProcess } from './process.ts'
import { type RunOptions, startSandbox, stopSandbox } from './run-sandbox.ts'
import { type CreateSandboxOptions, wireCreate } from './sandbox-options.ts'
import { type AttachOptions, attachProcess, type Spawned, type SpawnOptions, spawnProcess } from './spawn.ts'
import { openTerminal, type Terminal, type TerminalOptions } from './terminal.ts'
import type { CallOptions } from './transport.ts'
import { readUsage, type SandboxUsage } from './usage.ts'

export type { RunOptions } from './run-sandbox.ts'
export type { CreateSandboxOptions } from './sandbox-options.ts'

type WithClient = {
  /** Default: a client from the environment. */
  readonly client?: Sandglass | undefined
}

export type GetOrCreateOptions = CreateSandboxOptions & {
  readonly name: string
  /** Delete one of that name that failed, and create a new one. Default false: `sandbox_failed`. */
  readonly replaceFailed?: boolean | undefined
}

export type ListSandboxesOptions = ListOptions &
  WithClient & {
    readonly status?: SandboxStatus | undefined
    readonly template?: string | undefined
    readonly name?: string | undefined
    /** Also sandboxes that are deleted, for as long as they are kept. */
    readonly includeEnded?: boolean | undefined
    /** Exact match of one entry. */
    readonly metadata?: { readonly key: string; readonly value: string } | undefined
  }

export type DeleteOptions = CallOptions & {
  /** Wait until nothing of it runs any more. Default true. */
  readonly wait?: boolean | undefined
}

const DELETE_WAIT_SECONDS = 60
const RUN_OPTIONS: Known<RunOptions> = { wait: true, signal: true, timeoutMs: true }

/** A program is a list; what else plain JavaScript may give is refused where programs are. */
const isRunOptions = (what: Argv | RunOptions): what is RunOptions => typeof what === 'object' && what !== null && !Array.isArray(what)

const page = parserOf(SandboxListSchema)

export class Sandbox implements AsyncDisposable {
  readonly #client: Sandglass
  readonly #plane: DataPlane
  #resource: WireSandbox
  #kept = false
  /** Made by the call that gave this object, not found by it. */
  readonly wasCreated: boolean

  /** Runs a command to its end: {@link Exec}. */
  readonly exec: Exec
  /** Files in it: {@link Files}. */
  readonly files: Files

  /** Use `Sandbox.create`, `Sandbox.get` or `Sandbox.list`. */
  private constructor(client: Sandglass, resource: WireSandbox, wasCreated = false) {
    this.#client = client
    this.wasCreated = wasCreated
    this.#resource = resource
    this.#plane = dataPlaneOf(client.transport, resource)
    this.exec = execOf(this.#plane)
    this.files = new Files(this.#plane)
  }

  /**
   * Creates a sandbox and waits until it is ready; with `wait: false` gives the operation at once.
   *
   * A lost answer is repeated with the same key, so there is never a second sandbox; a create that times out or is aborted leaves none.
   * @param options `timeoutMs` default 120,000, the start included
   * @throws SandglassError `name_taken`, `template_not_found`, `unschedulable_never`, `quota_exceeded`, `sandbox_start_failed`, `client_timeout`, …
   */
  static create(options: CreateSandboxOptions & { readonly wait: false }): Promise<Operation>
  static create(options?: CreateSandboxOptions & { readonly wait?: true }): Promise<Sandbox>
  static async create(options: CreateSandboxOptions & { readonly wait?: boolean } = {}): Promise<Sandbox | Operation> {
    const client = options.client ?? new Sandglass()
    const body = wireCreate(options)
    const key = options.idempotencyKey ?? client.transport.world.newKey()
    if (options.wait !== false) return new Sandbox(client, await createReady(client, body, key, options), true)
    const made = await postSandbox(client, body, key, 0, options)
    return new Operation(made.operation_id, new Sandbox(client, made, true), async (call) => new Sandbox(client, await becomeReady(client, made, call), true))
  }

  /**
   * A sandbox that exists, by id or name, in whatever state it is. Never changes its deadline.
   * @throws SandglassError `sandbox_not_found`
   */
  static async get(idOrName: string, options: CallOptions & WithClient = {}): Promise<Sandbox> {
    const client = options.client ?? new Sandglass()
    return new Sandbox(client, await getSandbox(client, idOrName, options))
  }

  /**
   * The sandbox of that name, ready; created when there is none. `wasCreated` says which. One that was found is as it was made: neither its deadline
   * (`extend` moves it) nor its resources are those of this call.
   * @param options `replaceFailed: true` deletes one that failed, files included, and creates a new one in its place
   * @throws SandglassError as `create`; `sandbox_failed` when there is one that cannot be used
   */
  static async getOrCreate(options: GetOrCreateOptions): Promise<Sandbox> {
    const { replaceFailed = false, ...asked } = options
    // Without one, plain JavaScript would get a new sandbox at every call.
    if (typeof options.name !== 'string') throw new SandglassError('invalid_request', "getOrCreate needs a name: getOrCreate({ name: 'build' }).")
    // Refused also where one is found, and nothing is asked for.
    wireCreate(asked)
    const client = options.client ?? new Sandglass()
    const found = await Sandbox.#find(client, options.name, asked, replaceFailed)
    if (found !== undefined) return found
    try {
      return await Sandbox.create({ ...asked, client })
    } catch (error) {
      if (!(error instanceof SandglassError) || error.code !== 'name_taken') throw error
      const other = await Sandbox.#find(client, options.name, asked, false)
      if (other === undefined) throw error
      return other
    }
  }

  static async #find(client: Sandglass, name: string, options: CallOptions, replaceFailed: boolean): Promise<Sandbox | undefined> {
    try {
      const { signal, timeoutMs } = options
      const resource = await getSandbox(client, name, { signal, timeoutMs })
      if (resource.status === 'failed' && replaceFailed) {
        await deleteSandbox(client, resource.id, DELETE_WAIT_SECONDS, { signal })
        return undefined
      }
      if (resource.desired !== 'running' || resource.status === 'failed') throw notReady(client, resource)
      if (resource.status === 'ready') return new Sandbox(client, resource)
      // It is wanted already, so nothing is changed: a restart by policy has no operation to wait for, and asking gives it one.
      return new Sandbox(client, await startSandbox(client, resource.id, { signal, timeoutMs }))
    } catch (error) {
      if (error instanceof SandglassError && error.code === 'sandbox_not_found') return undefined
      throw error
    }
  }

  /** All sandboxes that match, newest first, page by page. */
  static async *list(options: ListSandboxesOptions = {}): AsyncGenerator<Sandbox, void, undefined> {
    const client = options.client ?? new Sandglass()
    const filters = {
      status: options.status,
      template: options.template,
      name: options.name,
      include_ended: options.includeEnded === undefined ? undefined : String(options.includeEnded),
      metadata: options.metadata === undefined ? undefined : `${options.metadata.key}=${options.metadata.value}`,
    }
    for await (const item of listPages(client.transport, `${client.url}/v1/sandboxes`, filters, page, options)) yield new Sandbox(client, item)
  }

  /** `sb…` */
  get id(): string {
    return this.#resource.id
  }

  get name(): string | null {
    return this.#resource.name
  }

  /** As it was when last read; `refresh` reads it again. */
  get status(): SandboxStatus {
    return this.#resource.status
  }

  /** When it is deleted by itself. */
  get expiresAt(): Date {
    return new Date(this.#resource.expires_at)
  }

  /** The API's object as it was last read, with the API's own field names. */
  get resource(): WireSandbox {
    return this.#resource
  }

  /** Reads it again. */
  async refresh(options: CallOptions = {}): Promise<this> {
    this.#resource = await getSandbox(this.#client, this.id, options)
    return this
  }

  /**
   * Starts a program in the background and does not join it: `process` and `attach` find it again, its output is kept in a window of 1 MiB.
   * @throws SandglassError as `exec`
   */
  start(argv: Argv, options?: CommandOptions & CallOptions): Promise<RemoteProcess>
  /**
   * Without a program: starts the sandbox itself, when it is stopped or failed, and waits until it is ready. The same id, name and environment; the
   * writable layer is empty, and its life is the one that was asked for at create. One that is ready stays as it is.
   * @throws SandglassError `sandbox_ended`, `quota_exceeded`, `sandbox_start_failed`, `sandbox_stopped` when it was stopped meanwhile, `client_timeout`
   */
  start(options?: RunOptions): Promise<this>
  async start(what: Argv | RunOptions = {}, options: CommandOptions & CallOptions = {}): Promise<RemoteProcess | this> {
    if (!isRunOptions(what)) return await startProcess(this.#plane, { argv: what }, options)
    onlyKnown('start', what, RUN_OPTIONS)
    this.#resource = await startSandbox(this.#client, this.id, what)
    return this
  }

  /**
   * Stops it and waits until nothing of it runs any more. The record stays (30 days), **what was written in it is gone** (`resource.writable_layer`), and it
   * holds no capacity and no quota. `start` makes it ready again. Stopped already is fine.
   * @throws SandglassError `sandbox_ended`, `operation_overtaken` when it was started meanwhile, `client_timeout`
   */
  async stop(options: RunOptions = {}): Promise<this> {
    onlyKnown('stop', options, RUN_OPTIONS)
    this.#resource = await stopSandbox(this.#client, this.id, options)
    return this
  }

  /**
   * Starts a program and joins its streams; they survive lost connections.
   * @throws SandglassError as `exec`, and `too_many_sessions`
   */
  spawn(argv: Argv, options: SpawnOptions = {}): Promise<Spawned> {
    return spawnProcess(this.#plane, { argv }, options)
  }

  /** `spawn` with a line for `bash -lc`, or `sh -c` where there is no bash. */
  spawnShell(line: string, options: SpawnOptions = {}): Promise<Spawned> {
    return spawnProcess(this.#plane, { shell: line }, options)
  }

  /**
   * A process that was started before, by this client or another.
   * @param idOrKey `pr…`, or `key:` and its process key
   * @throws SandglassError `process_not_found`
   */
  process(idOrKey: string, options: CallOptions = {}): Promise<RemoteProcess> {
    return getProcess(this.#plane, idOrKey, options)
  }

  /**
   * Joins the streams of a process that was started before; they survive lost connections.
   * @param idOrKey `pr…`, or `key:` and its process key
   * @throws SandglassError `process_not_found`
   */
  attach(idOrKey: string, options: AttachOptions = {}): Promise<Spawned> {
    return attachProcess(this.#plane, idOrKey, options)
  }

  /** Running processes, and ended ones that are still remembered. */
  processes(options: CallOptions = {}): Promise<RemoteProcess[]> {
    return listProcesses(this.#plane, options)
  }

  /**
   * CPU, memory, disk and network since its start, counted by its host from outside.
   * @throws SandglassError `sandbox_not_ready`, `sandbox_ended`
   */
  usage(options: CallOptions = {}): Promise<SandboxUsage> {
    return readUsage(this.#plane, options)
  }

  /**
   * A terminal: a new one with a login shell, or with `id` (`pr…`, or `key:` and its process key) one that exists, from the offset `since` on. A
   * `processKey` that is known joins its process at the first byte, also when it has ended; then take a new key.
   * @throws SandglassError `process_not_found`, `not_a_terminal`, `too_many_sessions`
   */
  terminal(options: TerminalOptions = {}): Promise<Terminal> {
    return openTerminal(this.#plane, options)
  }

  /**
   * Moves the deadline to `ttlSeconds` from now. Never shortens it.
   * @throws SandglassError `sandbox_ended`, `invalid_request`
   */
  async extend(ttlSeconds: number, options: CallOptions = {}): Promise<this> {
    this.#resource = await this.#client.transport.json(
      { ...options, method: 'POST', url: `${this.#url}/extend`, json: { ttl_seconds: ttlSeconds }, repeatable: true },
      sandboxParser,
    )
    return this
  }

  /**
   * Changes name or metadata; metadata is replaced as a whole, `name: null` gives the name up.
   * @throws SandglassError `name_taken`, `sandbox_ended`
   */
  async update(change: { readonly name?: string | null; readonly metadata?: Readonly<Record<string, string>> }, options: CallOptions = {}): Promise<this> {
    this.#resource = await this.#client.transport.json({ ...options, method: 'PATCH', url: this.#url, json: change, repeatable: true }, sandboxParser)
    return this
  }

  /** Deletes it and everything in it. Twice is fine. */
  delete(options: DeleteOptions = {}): Promise<void> {
    return deleteSandbox(this.#client, this.id, options.wait === false ? 0 : DELETE_WAIT_SECONDS, options)
  }

  /** Keeps it beyond the end of an `await using` block. */
  detach(): this {
    this.#kept = true
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#kept) await this.delete()
  }

  get #url(): string {
    return `${this.#client.url}/v1/sandboxes/${this.id}`
  }
}
