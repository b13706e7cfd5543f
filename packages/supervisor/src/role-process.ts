/**
 * One role under supervision: started, watched, restarted when it ends by itself, stopped when told.
 *
 *   starting   its process runs and is not ready yet
 *   ready      its last look said so
 *   unready    was ready, and its last look said no
 *   waiting    it ended by itself; the pause before the next start
 *   stopped    told to stop, or not started yet
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { CodedError } from '@sandglass/contract/errors'
import type { LogFile } from './log-file.ts'
import type { RoleSpec, RoleTiming } from './role-spec.ts'

export type RoleState = 'starting' | 'ready' | 'unready' | 'waiting' | 'stopped'

export type RoleReport = {
  readonly name: string
  readonly state: RoleState
  readonly pid: number | undefined
  /** Of the process that runs. */
  readonly url: string | undefined
  readonly restarts: number
  readonly since: string
  /** How it ended last, in words. */
  readonly lastExit: string | undefined
}

export type RoleWorld = {
  readonly timing: RoleTiming
  readonly now: () => Date
  readonly log: LogFile
  /** The process runs; called before anything is awaited. */
  readonly started: (pid: number) => void
  readonly ended: () => void
  readonly changed: (report: RoleReport) => void
}

export class RoleProcess {
  readonly spec: RoleSpec
  readonly #world: RoleWorld
  readonly #stopping = new AbortController()
  readonly #firstReady = Promise.withResolvers<void>()
  #report: RoleReport
  #child: ChildProcess | undefined
  #life: Promise<void> | undefined
  #lastLine = ''

  constructor(spec: RoleSpec, world: RoleWorld) {
    this.spec = spec
    this.#world = world
    this.#report = { name: spec.name, state: 'stopped', pid: undefined, url: undefined, restarts: 0, since: world.now().toISOString(), lastExit: undefined }
    this.#firstReady.promise.catch(() => undefined)
  }

  get report(): RoleReport {
    return this.#report
  }

  /** Resolves when the role is ready for the first time. @throws CodedError `role_not_ready` */
  async start(): Promise<void> {
    this.#life ??= this.#live()
    const { startMs } = this.#world.timing
    const timer = setTimeout(() => this.#fail(`was not ready within ${startMs / 1_000} s`), startMs)
    try {
      await this.#firstReady.promise
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends the role and waits for its end, at most a little longer than the patience it is given. */
  async stop(): Promise<void> {
    this.#fail('was told to stop')
    this.#stopping.abort()
    const child = this.#child
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      child.kill(this.spec.stopSignal)
      const killer = setTimeout(() => child.kill('SIGKILL'), this.#world.timing.stopMs)
      await this.#life
      clearTimeout(killer)
    }
    await this.#life
    this.#set({ state: 'stopped', pid: undefined, url: undefined })
  }

  #fail(why: string): void {
    const said = this.#lastLine === '' ? '' : ` It said last: "${this.#lastLine}".`
    this.#firstReady.reject(new CodedError('role_not_ready', `The role ${this.spec.name} ${why}.${said} Type: sandglass logs ${this.spec.name}`))
  }

  #set(change: Partial<RoleReport>): void {
    const moved = change.state !== undefined && change.state !== this.#report.state
    this.#report = { ...this.#report, ...change, ...(moved ? { since: this.#world.now().toISOString() } : {}) }
    this.#world.changed(this.#report)
  }

  async #live(): Promise<void> {
    const { timing } = this.#world
    let crashes = 0
    while (!this.#stopping.signal.aborted) {
      const ranMs = await this.#runOnce()
      if (this.#stopping.signal.aborted) return
      crashes = ranMs >= timing.stableMs ? 1 : crashes + 1
      if (crashes >= timing.startCrashes) this.#fail(`ended ${crashes} times (${this.#report.lastExit ?? 'unknown'})`)
      this.#set({ state: 'waiting', pid: undefined, url: undefined, restarts: this.#report.restarts + 1 })
      const pause = Math.min(timing.backoffMaxMs, timing.backoffMs * 2 ** Math.min(crashes - 1, 20))
      await delay(pause, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
    }
  }

  /** @returns how long its process ran, milliseconds */
  async #runOnce(): Promise<number> {
    let began = performance.now()
    try {
      const launch = await this.spec.launch(this.#stopping.signal)
      began = performance.now()
      if (this.#stopping.signal.aborted) return 0
      const child = spawn(launch.command, launch.args, { env: launch.env, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] })
      this.#child = child
      const ended = once(child, 'exit')
      child.stdout.on('data', (chunk: Buffer) => this.#keep(chunk))
      child.stderr.on('data', (chunk: Buffer) => this.#keep(chunk))
      await once(child, 'spawn')
      const { pid } = child
      if (pid === undefined) throw new Error('the process has no pid')
      this.#world.started(pid)
      this.#set({ state: 'starting', pid, url: launch.url })
      const watching = new AbortController()
      const watched = this.#watch(() => launch.isReady(pid), watching.signal)
      const [code, signal]: unknown[] = await ended
      watching.abort()
      await watched
      this.#set({ lastExit: typeof signal === 'string' ? `ended by ${signal}` : `exit code ${String(code)}` })
    } catch (error) {
      this.#set({ lastExit: error instanceof Error ? error.message : String(error) })
    } finally {
      this.#world.ended()
    }
    return performance.now() - began
  }

  async #watch(isReady: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    const { timing } = this.#world
    while (!signal.aborted) {
      const ready = await isReady().catch(() => false)
      if (signal.aborted) return
      if (ready && this.#report.state !== 'ready') {
        this.#firstReady.resolve()
        this.#set({ state: 'ready' })
      } else if (!ready && this.#report.state === 'ready') this.#set({ state: 'unready' })
      await delay(ready ? timing.watchMs : timing.readyPollMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #keep(chunk: Buffer): void {
    this.#world.log.write(chunk)
    const line = chunk.toString('utf8').trimEnd().split('\n').pop()
    if (line !== undefined && line !== '') this.#lastLine = line.slice(0, 300)
  }
}
