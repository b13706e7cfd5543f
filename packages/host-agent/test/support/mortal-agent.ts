/** An agent in a process of its own that is killed and started again, at a named point if so armed. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { CrashPoint } from '../../src/faults/crash-point.ts'
import type { Installation } from './installation.ts'
import { until } from './until.ts'

export class MortalAgent {
  readonly #installation: Installation
  #running: ReturnType<Installation['spawnAgent']> | undefined

  constructor(installation: Installation) {
    this.#installation = installation
  }

  process(): ChildProcess {
    if (this.#running === undefined) throw new Error('no agent')
    return this.#running
  }

  /** @param joins false: it dies before it registers */
  async start(crashAt?: CrashPoint, joins = true): Promise<void> {
    const { plane } = this.#installation
    const registered = plane.registrations.length
    this.#running = this.#installation.spawnAgent(crashAt === undefined ? {} : { SANDGLASS_CRASH_AT: crashAt })
    if (!joins) return
    await until('a registration', () => (plane.registrations.length > registered ? true : undefined))
    await plane.untilWatching()
  }

  async untilKilled(): Promise<void> {
    const agent = this.#running
    if (agent === undefined) throw new Error('no agent')
    if (agent.signalCode === null && agent.exitCode === null) await once(agent, 'exit', { signal: AbortSignal.timeout(60_000) })
    assert.equal(agent.signalCode, 'SIGKILL')
    await until('the watch to break', () => (this.#installation.plane.watching ? undefined : true))
  }

  async kill(): Promise<void> {
    this.#running?.kill('SIGKILL')
    await this.untilKilled()
  }
}
