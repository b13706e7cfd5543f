/** Ending a sandbox: make the mark durable, take the runtime down, make that durable, tell it, and forget it when nothing can be on its way. */
import type { EndOrder } from '@sandglass/contract'
import { decideEnd } from '../domain/decide-end.ts'
import { type Ended, recordEnding, recordGone, recordSettled, recordTerm, type SandboxRecord } from '../domain/sandbox-record.ts'
import { mayForget } from '../domain/tombstone.ts'
import { stopRuntime } from '../lifecycle/stop-runtime.ts'
import type { HeldSandbox } from './held-sandbox.ts'

export class SandboxEnd {
  readonly #held: HeldSandbox

  constructor(held: HeldSandbox) {
    this.#held = held
  }

  async obey(order: EndOrder): Promise<void> {
    const held = this.#held
    const decision = decideEnd(order, held.record, held.world.position().hostId)
    if (decision.kind === 'ignore') return held.log.info('end.ignored', { upto: order.upto, detail: decision.detail })
    if (decision.kind === 'repeat') return this.#tellIfGone(held.record)
    // guard: end.durable. The mark is on disk before anything is ended or reported.
    await held.write(decision.record)
    held.damaged = false
    held.world.lifecycle.faults.reach('stop.recorded')
    this.#tellIfGone(decision.record)
  }

  /** Also when it was answered before: the control plane asks again. */
  #tellIfGone(record: SandboxRecord | undefined): void {
    if (record?.phase === 'gone') this.#held.reporter.ended(record)
  }

  async turnToEnd(why: Ended): Promise<void> {
    const { record } = this.#held
    if (record !== undefined && record.phase !== 'gone') await this.#held.write(recordEnding(record, why))
  }

  async noteExit(): Promise<void> {
    const held = this.#held
    const { record } = held
    if (record?.phase !== 'running' || record.runtime === null) return
    const driver = held.world.lifecycle.driver(record.runtime.driver)
    if (driver.find(record.runtime.name) !== undefined) return
    const detail = driver.postMortem(record.runtime.name)
    held.log.warn('sandbox.exited', { generation: record.runtime.generation, detail })
    await held.write(recordEnding(record, { reason: 'runtime_exited', detail }))
  }

  async takeDown(): Promise<void> {
    const held = this.#held
    const { record } = held
    if (record?.phase !== 'ending') return
    const { lifecycle, ends } = held.world
    held.reporter.withdrawReady()
    const giveBack = await ends.take(held.closing.signal)
    try {
      await held.channel?.close()
      held.channel = undefined
      if (record.runtime !== null) await stopRuntime(lifecycle, record.runtime.name, [lifecycle.driver(record.runtime.driver)])
    } finally {
      giveBack()
    }
    // An end order may have raised the mark meanwhile; the newest record is the one that ends.
    const gone = recordGone(held.record ?? record)
    // guard: end.kill. Only now is there nothing left to report about.
    await held.write(gone)
    lifecycle.faults.reach('stop.gone_recorded')
    held.log.info('sandbox.ended', { high: gone.high, reason: gone.ended?.reason ?? null, detail: gone.ended?.detail ?? null })
    held.reporter.ended(gone)
    held.pending.releaseHeld()
  }

  async noteAnswered(high: number): Promise<void> {
    const { record } = this.#held
    if (record?.phase !== 'gone' || record.high !== high || record.settled) return
    await this.#held.write(recordSettled(record))
  }

  async noteSeq(seq: number): Promise<void> {
    const held = this.#held
    if (held.record === undefined) return
    const next = recordTerm(held.record, seq)
    if (next !== held.record) await held.write(next)
    if (mayForget(next, seq)) await held.forget()
  }
}
