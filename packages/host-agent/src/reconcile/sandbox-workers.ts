/** All sandboxes of this host, by id. */
import type { RuntimeName } from '../domain/runtime-name.ts'
import type { SandboxRecord } from '../domain/sandbox-record.ts'
import { SandboxWorker } from './sandbox-worker.ts'
import type { WorkerWorld } from './worker-world.ts'

export class SandboxWorkers {
  readonly #world: WorkerWorld
  readonly #workers = new Map<string, SandboxWorker>()

  constructor(world: WorkerWorld) {
    this.#world = world
  }

  load(records: readonly SandboxRecord[], damaged: readonly string[]): void {
    for (const record of records) this.#workers.set(record.sandbox, new SandboxWorker(this.#world, record.sandbox, record))
    for (const sandbox of damaged) this.#workers.set(sandbox, new SandboxWorker(this.#world, sandbox, undefined, true))
  }

  find(sandbox: string): SandboxWorker | undefined {
    return this.#workers.get(sandbox)
  }

  /** Of an order's sandbox; made when it is new here. */
  of(sandbox: string): SandboxWorker {
    const known = this.#workers.get(sandbox)
    if (known !== undefined) return known
    const worker = new SandboxWorker(this.#world, sandbox, undefined)
    this.#workers.set(sandbox, worker)
    return worker
  }

  all(): readonly SandboxWorker[] {
    return [...this.#workers.values()]
  }

  /** Names of runtimes that records name: whatever else is on the machine is a leftover. */
  desired(): Set<RuntimeName> {
    return new Set(this.all().flatMap((worker) => worker.runtimeName ?? []))
  }

  /** Those whose process must exist. */
  running(): Map<RuntimeName, SandboxWorker> {
    const running = new Map<RuntimeName, SandboxWorker>()
    for (const worker of this.#workers.values()) {
      const name = worker.runtimeName
      if (name !== undefined && worker.record?.phase === 'running') running.set(name, worker)
    }
    return running
  }

  /** Sandboxes that take up room here. */
  get occupied(): number {
    return this.desired().size
  }

  /** Workers that may be told the sequence of the next renewal: taken before that renewal is sent. */
  settled(): readonly SandboxWorker[] {
    return this.all().filter((worker) => worker.record?.settled === true)
  }

  /** Forgets those that have nothing to remember. */
  sweep(): void {
    for (const worker of this.#workers.values()) if (worker.idle) this.#workers.delete(worker.sandbox)
  }

  async close(): Promise<void> {
    await Promise.all(this.all().map((worker) => worker.close()))
  }
}
