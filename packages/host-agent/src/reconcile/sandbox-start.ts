/**
 * Starting a sandbox: judge the ticket, wait for a place in line, judge it again, then take it up. An end that covers a start in flight aborts
 * it at once and is then obeyed in its turn.
 */
import { CodedError, type EndOrder, LIMITS, poolSpecOf, type RuntimeSpec, type StartTicket } from '@sandglass/contract'
import { decideTicket, type Refusal } from '../domain/decide-ticket.ts'
import { localRefusal, offerRefusal } from '../domain/local-limits.ts'
import { type Ended, type RuntimeIntent, recordEnding, recordRunning, recordStart, type SandboxRecord } from '../domain/sandbox-record.ts'
import { claimRuntime, startRuntime } from '../lifecycle/start-runtime.ts'
import { type Stopwatch, stopwatch } from '../lifecycle/stopwatch.ts'
import { reasonOf } from '../log.ts'
import type { PickedMember } from '../pools/pool.ts'
import type { HeldSandbox } from './held-sandbox.ts'
import type { StartOrder } from './pending-work.ts'
import { DETAIL_CHARACTERS } from './sandbox-reporter.ts'
import { StartTrace } from './start-trace.ts'

class EndOrdered extends Error {
  override readonly name = 'EndOrdered'

  constructor() {
    super('an end was ordered while it was starting')
  }
}

/** A start that the ticket allows, on its way. `member`: undefined for one that starts cold. */
type Attempt = { readonly member: PickedMember | undefined; readonly watch: Stopwatch; readonly trace: StartTrace }

export class SandboxStart {
  readonly #held: HeldSandbox
  #launch: { readonly generation: number; readonly controller: AbortController } | undefined

  constructor(held: HeldSandbox) {
    this.#held = held
  }

  abortIfCovered({ host, upto }: EndOrder): void {
    // guard: end.gen, for the abort too: a start of a newer generation goes on.
    const { hostId } = this.#held.world.position()
    if (this.#launch !== undefined && host === hostId && upto >= this.#launch.generation) this.#launch.controller.abort(new EndOrdered())
  }

  abort(reason: Error): void {
    this.#launch?.controller.abort(reason)
  }

  async obey(order: StartOrder): Promise<void> {
    const { ticket, spec, heardAtMs } = order
    const { world, reporter } = this.#held
    const first = this.#judge(ticket, (refusal) => reporter.refused(ticket.generation, refusal))
    if (first !== undefined) return first(order)
    const trace = new StartTrace(world, order)
    const refuse = (refusal: Refusal): void => {
      reporter.refused(ticket.generation, refusal)
      trace.end({ outcome: 'refused', code: refusal.code })
    }
    const never = offerRefusal(spec, ticket.amounts, world.localOffer())
    if (never !== undefined) return refuse(never)
    const launch = new AbortController()
    this.#launch = { generation: ticket.generation, controller: launch }
    const watch = stopwatch(() => world.clock.nowMs(), heardAtMs, trace.onPhase)
    let member: PickedMember | undefined
    let giveBack: (() => void) | undefined
    try {
      watch.lap('accept')
      // Nothing comes between the look at the record and the pick, so tickets take members in the order in which they came.
      if (ticket.pool !== null) member = await world.pools.claim({ epoch: ticket.epoch, position: ticket.pool }, poolSpecOf(spec), launch.signal)
      if (member !== undefined) world.lifecycle.faults.reach('pool.picked')
      else giveBack = await world.starts.take(launch.signal)
      world.pools.noteWork()
      watch.lap('pick')
      trace.picked(ticket.pool === null ? 'none' : member === undefined ? 'miss' : 'hit')
      // Time has passed in the line: the host may have heard of newer terms.
      const again = this.#judge(ticket, refuse)
      if (again !== undefined) return again(order)
      const refusal = member === undefined ? localRefusal(spec, ticket.amounts, await world.localState()) : undefined
      if (refusal !== undefined) return refuse(refusal)
      await this.#takeUp(order, { member, watch, trace }, launch.signal)
    } catch (error) {
      if (launch.signal.aborted) {
        if (launch.signal.reason instanceof EndOrdered) trace.end({ outcome: 'stopped' })
        return
      }
      refuse({ code: 'unavailable', detail: `The host could not record the start: ${reasonOf(error)}` })
    } finally {
      this.#launch = undefined
      giveBack?.()
      member?.putBack()
    }
  }

  /** What to do instead of starting, or undefined. */
  #judge(ticket: StartTicket, refuse: (refusal: Refusal) => void): ((order: StartOrder) => void) | undefined {
    const { damaged, reporter, pending, record, world } = this.#held
    if (damaged) return () => refuse({ code: 'internal', detail: 'The record of this sandbox on this host is damaged.' })
    const decision = decideTicket(ticket, record, world.position())
    if (decision.kind === 'accept') return undefined
    if (decision.kind === 'duplicate') return () => reporter.state(this.#held.record)
    if (decision.kind === 'wait') return (order) => pending.holdStart(order)
    return () => refuse(decision)
  }

  /** @throws Error when the intent could not be recorded: then nothing was started */
  async #takeUp({ ticket, spec }: StartOrder, { member, watch, trace }: Attempt, signal: AbortSignal): Promise<void> {
    const held = this.#held
    const { lifecycle } = held.world
    lifecycle.faults.reach('start.decided')
    const record = await this.#recordIntent(ticket, spec, member)
    lifecycle.faults.reach('start.recorded')
    watch.lap('record')
    try {
      const input = { runtime: held.identityOf(record.runtime), spec, onLost: held.onLost }
      const within = deadline(signal)
      const started = await (member === undefined
        ? startRuntime(lifecycle, { ...input, before: watch.laps, onPhase: trace.onPhase }, within.signal)
        : claimRuntime(lifecycle, member.runtime, { ...input, watch }, within.signal)
      ).finally(within.cancel)
      held.channel = started.channel
      const running = recordRunning(record, started.seen)
      if (member !== undefined) this.#tell(running, ticket.generation, trace)
      await held.insist('record_ready', () => held.write(running))
      lifecycle.faults.reach('start.ready_recorded')
      if (member === undefined) this.#tell(running, ticket.generation, trace)
    } catch (error) {
      // A stop of the agent decides nothing: recovery ends the launch.
      if (held.closing.signal.aborted) return
      held.log.warn('sandbox.start_failed', { generation: ticket.generation, reason: reasonOf(error) })
      const stopped = signal.reason instanceof EndOrdered
      held.world.metrics.count('sandglass_host_starts_total', { outcome: stopped ? 'stopped' : 'failed' })
      trace.end(stopped ? { outcome: 'stopped' } : { outcome: 'failed', code: error instanceof CodedError ? error.code : 'sandbox_start_failed' })
      const why: Ended = stopped ? { reason: 'ordered', detail: null } : { reason: 'start_failed', detail: reasonOf(error).slice(0, DETAIL_CHARACTERS) }
      await held.insist('record_failed_start', () => held.write(recordEnding(record, why)))
    }
  }

  /** guard: member.record. @throws Error when it is not on disk: then a member may be named there all the same, so nobody gets it */
  async #recordIntent(ticket: StartTicket, spec: RuntimeSpec, member: PickedMember | undefined): Promise<SandboxRecord & { readonly runtime: RuntimeIntent }> {
    const { guestBootId, evidence, name } = member?.runtime ?? {}
    const intent = name === undefined || evidence === undefined || guestBootId === undefined ? null : { name, evidence, guest_boot_id: guestBootId }
    const record = recordStart(ticket, spec, intent)
    try {
      await this.#held.write(record)
    } catch (error) {
      member?.spoil()
      throw error
    }
    member?.taken()
    return record
  }

  /**
   * A claim is told before its record says that it runs: a restart finds the member alive and its guest with the identity, and says the same.
   * A cold start in flight is ended by a restart, so it is told only when the record says otherwise.
   */
  #tell(running: SandboxRecord, generation: number, trace: StartTrace): void {
    const { runtime } = running
    this.#held.assume(running)
    // Its first command is on the way.
    this.#held.world.pools.noteWork()
    this.#held.reporter.state(running)
    this.#held.log.info('sandbox.ready', { generation, path: runtime?.path, total_ms: runtime?.timings_ms['total'] ?? 0 })
    if (runtime !== null) this.#count(runtime)
    trace.end({ outcome: 'ready' })
  }

  #count({ path, timings_ms }: RuntimeIntent): void {
    const { metrics } = this.#held.world
    metrics.count('sandglass_host_starts_total', { outcome: 'ready' })
    for (const [phase, ms] of Object.entries(timings_ms)) {
      if (phase === 'total') metrics.observeSeconds('sandglass_host_start_duration_seconds', { path }, ms / 1_000)
      else metrics.observeSeconds('sandglass_host_start_phase_duration_seconds', { path, phase }, ms / 1_000)
    }
  }
}

function deadline(signal: AbortSignal): { readonly signal: AbortSignal; readonly cancel: () => void } {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error(`the sandbox was not ready within ${LIMITS.hostStartMs} ms`)), LIMITS.hostStartMs)
  return { signal: AbortSignal.any([signal, late.signal]), cancel: () => clearTimeout(timer) }
}
