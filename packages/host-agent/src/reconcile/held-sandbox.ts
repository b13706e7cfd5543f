/** What this host holds of one sandbox: its record, its channel, and what was told of it and is not done yet. One worker writes it. */
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { RuntimeIntent, SandboxRecord } from '../domain/sandbox-record.ts'
import type { GuestChannel } from '../guest/guest-channel.ts'
import type { RuntimeIdentity } from '../lifecycle/lifecycle-world.ts'
import { type Log, reasonOf } from '../log.ts'
import { PendingWork } from './pending-work.ts'
import { SandboxReporter } from './sandbox-reporter.ts'
import type { WorkerWorld } from './worker-world.ts'

const RETRY_FIRST_MS = 100
const RETRY_MAX_MS = 5_000

export class HeldSandbox {
  readonly sandbox: string
  readonly world: WorkerWorld
  readonly log: Log
  readonly pending = new PendingWork()
  readonly reporter: SandboxReporter
  /** Fires when the agent stops. */
  readonly closing = new AbortController()
  channel: GuestChannel | undefined
  /** The record on disk cannot be read: nothing may start until an end order has replaced it. */
  damaged: boolean
  readonly #wake: () => void
  #record: SandboxRecord | undefined
  #retryMs = RETRY_FIRST_MS

  /** @param wake there is pending work */
  constructor(world: WorkerWorld, sandbox: string, record: SandboxRecord | undefined, damaged: boolean, wake: () => void) {
    this.sandbox = sandbox
    this.world = world
    this.damaged = damaged
    this.log = world.log.with({ sandbox })
    this.#record = record
    this.#wake = wake
    this.reporter = new SandboxReporter(sandbox, {
      reports: world.reports,
      faults: world.lifecycle.faults,
      log: this.log,
      poolSettled: (pool) => world.pools.settled(pool),
      onAnswered: (high) => {
        this.pending.putAnswered(high)
        wake()
      },
    })
  }

  get record(): SandboxRecord | undefined {
    return this.#record
  }

  get ending(): boolean {
    return this.#record?.phase === 'ending'
  }

  /** Of the runtime that the record names, whatever its phase. */
  get runtimeName(): RuntimeName | undefined {
    return this.#record?.runtime?.name
  }

  identityOf({ name, generation, epoch }: RuntimeIntent): RuntimeIdentity {
    return { name, sandbox: this.sandbox, generation, epoch }
  }

  async write(record: SandboxRecord): Promise<void> {
    const pool = this.#record?.pool ?? null
    // The old record may be the only place on disk that knows how far its pool had come.
    if (pool !== null && record.pool !== pool) await this.world.pools.stored(pool)
    await this.world.records.write(record)
    this.#record = record
  }

  /** It is so, and is written by the next `write`: for what a restart would find out by itself. */
  assume(record: SandboxRecord): void {
    this.#record = record
  }

  async forget(): Promise<void> {
    const pool = this.#record?.pool ?? null
    if (pool !== null) await this.world.pools.stored(pool)
    await this.world.records.forget(this.sandbox)
    this.#record = undefined
  }

  /** What leads to an end is never given up: a step that fails is tried again, ever more slowly, until it works. */
  async insist(step: string, work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await work()
        this.#retryMs = RETRY_FIRST_MS
        return
      } catch (error) {
        this.log.error('sandbox.step_failed', { step, reason: reasonOf(error), retry_ms: this.#retryMs })
        await this.world.clock.wait(this.#retryMs, this.closing.signal)
        this.#retryMs = Math.min(RETRY_MAX_MS, this.#retryMs * 2)
      }
    }
  }

  /** The runtime's process seems to be gone; it is looked at again before anything follows from that. */
  noteExit(): void {
    if (this.#record?.phase !== 'running') return
    this.pending.putExit()
    this.#wake()
  }

  readonly onLost = (): void => {
    this.log.info('guest.lost')
    this.noteExit()
  }
}
