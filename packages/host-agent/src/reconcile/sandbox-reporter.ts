/** What is told of one sandbox: made from its record, told again until it is answered. */
import type { Refusal } from '../domain/decide-ticket.ts'
import type { ClaimedPool, RuntimeIntent, SandboxRecord } from '../domain/sandbox-record.ts'
import type { Faults } from '../faults/crash-point.ts'
import type { Log } from '../log.ts'
import type { DueReports } from './due-reports.ts'

export const DETAIL_CHARACTERS = 1_024

export type ReporterWorld = {
  readonly reports: DueReports
  readonly faults: Faults
  readonly log: Log
  /** The control plane has answered the end up to this mark. */
  onAnswered(high: number): void
  /** See `Pools.settled`. */
  poolSettled(pool: ClaimedPool): Promise<number>
}

export class SandboxReporter {
  readonly #sandbox: string
  readonly #world: ReporterWorld
  /** Of which an end was to be told last. */
  #newest: SandboxRecord | undefined

  constructor(sandbox: string, world: ReporterWorld) {
    this.#sandbox = sandbox
    this.#world = world
  }

  /** Makes due what the record says, unless it was answered. */
  state(record: SandboxRecord | undefined): void {
    if (record?.phase === 'running' && record.runtime !== null) this.#ready(record.runtime)
    if (record?.phase === 'gone' && !record.settled) this.ended(record)
  }

  /** guard: ended.pool. What was claimed from a pool is told when the pool's version is. */
  ended(record: SandboxRecord): void {
    this.#newest = record
    if (record.pool === null) this.#ended(record, null)
    else
      this.#world.poolSettled(record.pool).then((version) => {
        if (this.#newest === record) this.#ended(record, version)
      })
  }

  #ended({ high, ended }: SandboxRecord, poolVersion: number | null): void {
    const { reports, faults, onAnswered } = this.#world
    reports.add(
      { type: 'ended', sandbox: this.#sandbox, upto: high, reason: ended?.reason ?? 'recovered', detail: ended?.detail ?? null, pool_version: poolVersion },
      () => {
        faults.reach('stop.reported')
        onAnswered(high)
      },
    )
  }

  refused(generation: number, { code, detail }: Refusal): void {
    const { reports, log } = this.#world
    log.warn('ticket.refused', { generation, code, detail })
    reports.add({ type: 'refused', sandbox: this.#sandbox, generation, code, detail: detail.slice(0, DETAIL_CHARACTERS) })
  }

  /** What no longer runs need not be told as ready. */
  withdrawReady(): void {
    this.#world.reports.withdrawReady(this.#sandbox)
  }

  #ready({ generation, driver, path, evidence, timings_ms }: RuntimeIntent): void {
    const { reports, faults } = this.#world
    reports.add({ type: 'ready', sandbox: this.#sandbox, generation, driver, path, evidence: { ...evidence }, timings_ms: { ...timings_ms } }, () =>
      faults.reach('start.reported'),
    )
  }
}
