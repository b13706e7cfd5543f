/** Sandboxes of a mock: names, idempotency keys, deadlines, and what runs in each. */
import { CodedError, ERRORS } from '@sandglass/contract/errors'
import { newOperationId, newProcessId, newSandboxId, parseSandboxId } from '@sandglass/contract/ids'
import { LIMITS } from '@sandglass/contract/limits'
import { type CreateSandbox, DEFAULT_RESOURCES, type Sandbox, type UpdateSandbox, writableLayerOf } from '@sandglass/contract/sandbox'
import type { MockClock } from './clock.ts'
import { MockFiles } from './files.ts'
import { MockProcess, type MockProgram, type MockStart } from './process.ts'

const random = (size: number): Uint8Array => crypto.getRandomValues(new Uint8Array(size))
const latest = (...times: string[]): string => new Date(Math.max(...times.map(Date.parse))).toISOString()
const DIGEST = `sha256:${'0'.repeat(64)}`

/** Finds the program of a command. @throws CodedError `executable_not_found` */
export type FindProgram = (start: Pick<MockStart, 'argv' | 'line'>) => MockProgram

export type Started = Omit<MockStart, 'id'>

export class MockSandbox {
  resource: Sandbox
  readonly env: Readonly<Record<string, string>>
  files: MockFiles
  readonly processes: MockProcess[] = []
  readonly #clock: MockClock
  readonly #programs: FindProgram
  readonly #keys = new Set<string>()
  /** The deadline of its running life, while it is stopped. */
  #lifeUntil = ''

  constructor(resource: Sandbox, env: Readonly<Record<string, string>>, clock: MockClock, programs: FindProgram) {
    this.resource = resource
    this.env = env
    this.#clock = clock
    this.#programs = programs
    this.files = new MockFiles(() => clock.nowMs)
  }

  get isDeleted(): boolean {
    return this.resource.desired === 'deleted'
  }

  /** A repeat with the same key is the same process. @throws CodedError `executable_not_found`, `cwd_not_found` */
  begin(start: Started): MockProcess {
    const known = start.key === undefined ? undefined : this.processes.find((process) => process.start.key === start.key)
    if (known !== undefined) return known
    if (!this.files.isDirectory(start.cwd)) throw new CodedError('cwd_not_found', `${start.cwd} is not a directory of this sandbox.`)
    const program = this.#programs(start)
    const process = new MockProcess({ ...start, id: newProcessId(random), env: { ...this.env, ...start.env } }, program, this.files, this.#clock)
    this.processes.push(process)
    return process
  }

  /** @param idOrKey `pr…`, or `key:` and a process key @throws CodedError `process_not_found` */
  process(idOrKey: string): MockProcess {
    const found = this.processes.find(({ start }) => start.id === idOrKey || (start.key !== undefined && `key:${start.key}` === idOrKey))
    if (found === undefined) throw new CodedError('process_not_found')
    return found
  }

  /** Stops twice, and once for each key. */
  stop(key: string | undefined): void {
    if (this.#isReplay(key) || this.resource.status !== 'ready') return
    this.#halt('stopped: on request; what was written in it is gone')
  }

  /** Its life is over, or nobody has used it for its idle timeout. */
  endIfDue(): void {
    const { desired, expires_at: expires, idle_at: idle, on_timeout: action } = this.resource
    const isOver = (time: string | null): boolean => time !== null && Date.parse(time) <= this.#clock.nowMs
    if (desired === 'deleted' || !(isOver(expires) || isOver(idle))) return
    const reason = isOver(expires) ? 'ttl_expired: its time to live is over' : 'idle_timeout: nobody has used it for its idle timeout'
    if (desired === 'running' && action === 'stop') this.#halt(`${reason}; what was written in it is gone`)
    else this.end(reason)
  }

  /** Somebody uses it. */
  touch(): void {
    const { idle_timeout_seconds: timeout } = this.resource
    if (timeout !== null) this.resource = { ...this.resource, idle_at: this.#in(timeout) }
  }

  #halt(statusReason: string): void {
    const { expires_at: expiresAt, generation } = this.resource
    this.#lifeUntil = expiresAt
    const kept = this.#in(LIMITS.stoppedLifeSeconds)
    this.#leave('stopped')
    this.resource = {
      ...this.resource,
      desired: 'stopped',
      generation: generation + 1,
      status_reason: statusReason,
      expires_at: latest(kept, expiresAt),
    }
  }

  /** A new runtime: no file and no process of the one before is in it. */
  start(key: string | undefined): void {
    if (this.#isReplay(key) || this.resource.status !== 'stopped') return
    const { generation, ttl_seconds: ttl } = this.resource
    const life = this.#in(ttl)
    this.resource = {
      ...this.resource,
      status: 'ready',
      status_reason: null,
      desired: 'running',
      generation: generation + 2,
      writable_layer: writableLayerOf('ready'),
      ready_at: this.#in(0),
      ended_at: null,
      expires_at: latest(life, this.#lifeUntil),
    }
    this.touch()
  }

  end(statusReason: string): void {
    this.#leave('terminated')
    const { generation } = this.resource
    this.resource = { ...this.resource, name: null, status_reason: statusReason, desired: 'deleted', generation: generation + 1 }
  }

  #leave(status: 'stopped' | 'terminated'): void {
    for (const process of this.processes.splice(0)) process.kill('KILL')
    this.files = new MockFiles(() => this.#clock.nowMs)
    this.resource = { ...this.resource, status, writable_layer: writableLayerOf(status), idle_at: null, ended_at: this.#in(0) }
  }

  #isReplay(key: string | undefined): boolean {
    if (key === undefined || !this.#keys.has(key)) {
      if (key !== undefined) this.#keys.add(key)
      return false
    }
    return true
  }

  #in(seconds: number): string {
    return new Date(this.#clock.nowMs + seconds * 1000).toISOString()
  }
}

export class MockSandboxes {
  readonly #clock: MockClock
  readonly #programs: FindProgram
  readonly #url: string
  readonly #all: MockSandbox[] = []
  readonly #byKey = new Map<string, { readonly body: string; readonly sandbox: MockSandbox }>()

  constructor(url: string, clock: MockClock, programs: FindProgram) {
    this.#url = url
    this.#clock = clock
    this.#programs = programs
  }

  /** Newest first; those whose deadline has passed end now. */
  get all(): readonly MockSandbox[] {
    for (const sandbox of this.#all) sandbox.endIfDue()
    return [...this.#all].reverse()
  }

  /** @throws CodedError `name_taken`, `template_not_found`, `idempotency_key_reused` */
  create(body: CreateSandbox, key: string | undefined): MockSandbox {
    const text = JSON.stringify(body)
    const known = key === undefined ? undefined : this.#byKey.get(key)
    if (known !== undefined && known.body !== text) throw new CodedError('idempotency_key_reused')
    if (known !== undefined) return known.sandbox
    const {
      name = null,
      template = 'base',
      resources,
      env = {},
      metadata = {},
      network,
      ttl_seconds: ttl = LIMITS.ttlSecondsDefault,
      idle_timeout_seconds: idleTimeout = null,
      on_timeout: onTimeout = 'delete',
      restart_policy: restartPolicy = 'never',
    } = body
    if (name !== null) this.#refuseTaken(name, this.all)
    if (template !== 'base') throw new CodedError('template_not_found', `There is no template ${template}. There is base.`)
    const now = new Date(this.#clock.nowMs).toISOString()
    const resource: Sandbox = {
      id: newSandboxId('l1', random),
      name,
      status: 'ready',
      status_reason: null,
      unschedulable_reason: null,
      desired: 'running',
      writable_layer: writableLayerOf('ready'),
      restart_policy: restartPolicy,
      restarts: 0,
      generation: 1,
      template: { name: template, digest: DIGEST },
      resources: { ...DEFAULT_RESOURCES, ...resources },
      isolation: { driver: 'fake', evidence: { isolation: 'none' } },
      network: { mode: network?.mode ?? 'none' },
      env_names: Object.keys(env).sort(),
      metadata,
      region: 'l1',
      host_id: null,
      gateway_url: this.#url,
      gateway_urls: [this.#url],
      ttl_seconds: ttl,
      idle_timeout_seconds: idleTimeout,
      on_timeout: onTimeout,
      created_at: now,
      ready_at: now,
      expires_at: this.#deadline(ttl),
      idle_at: idleTimeout === null ? null : this.#deadline(idleTimeout),
      ended_at: null,
      start_path: null,
      start_timings_ms: null,
      operation_id: newOperationId(random),
    }
    const sandbox = new MockSandbox(resource, env, this.#clock, this.#programs)
    this.#all.push(sandbox)
    if (key !== undefined) this.#byKey.set(key, { body: text, sandbox })
    return sandbox
  }

  /** @throws CodedError `sandbox_not_found` */
  find(idOrName: string): MockSandbox {
    const isId = parseSandboxId(idOrName) !== undefined
    const found = this.all.find(({ resource }) => (isId ? resource.id === idOrName : resource.name === idOrName))
    if (found === undefined) throw new CodedError('sandbox_not_found', `There is no sandbox ${idOrName}. ${ERRORS.sandbox_not_found.next}`)
    return found
  }

  /** One that is not deleted. @throws CodedError `sandbox_not_found`, `sandbox_ended` */
  kept(id: string): MockSandbox {
    const sandbox = this.find(id)
    if (!sandbox.isDeleted) return sandbox
    throw new CodedError('sandbox_ended', `The sandbox has ended (${sandbox.resource.status_reason}). ${ERRORS.sandbox_ended.next}`)
  }

  /** One that can be reached into. @throws CodedError `sandbox_not_found`, `sandbox_ended`, `sandbox_stopped` */
  live(id: string): MockSandbox {
    const sandbox = this.kept(id)
    if (sandbox.resource.status !== 'ready')
      throw new CodedError('sandbox_stopped', `The sandbox is ${sandbox.resource.status}. ${ERRORS.sandbox_stopped.next}`)
    sandbox.touch()
    return sandbox
  }

  extend(sandbox: MockSandbox, ttlSeconds: number): void {
    const expires = this.#deadline(ttlSeconds)
    if (expires > sandbox.resource.expires_at) sandbox.resource = { ...sandbox.resource, expires_at: expires }
  }

  /** @throws CodedError `name_taken` */
  update(sandbox: MockSandbox, { name, metadata }: UpdateSandbox): void {
    const others = this.all.filter((other) => other !== sandbox)
    if (typeof name === 'string') this.#refuseTaken(name, others)
    sandbox.resource = { ...sandbox.resource, ...(name === undefined ? {} : { name }), ...(metadata === undefined ? {} : { metadata }) }
  }

  #refuseTaken(name: string, among: readonly MockSandbox[]): void {
    const holder = among.find(({ resource }) => resource.name === name)?.resource
    if (holder === undefined) return
    throw new CodedError('name_taken', `The name ${name} is taken by sandbox ${holder.id}, which is ${holder.status}. ${ERRORS.name_taken.next}`)
  }

  #deadline(ttlSeconds: number): string {
    return new Date(this.#clock.nowMs + ttlSeconds * 1000).toISOString()
  }
}
