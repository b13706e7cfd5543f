/**
 * One worker per sandbox: the only writer of its record, one thing at a time. What it is told meanwhile is its pending work.
 */
import { type EndOrder, LIMITS } from '@sandglass/contract'
import type { RuntimeName } from '../domain/runtime-name.ts'
import { type Ended, recordRunning, recordTerm, type SandboxRecord } from '../domain/sandbox-record.ts'
import { mayForget } from '../domain/tombstone.ts'
import type { GuestChannel } from '../guest/guest-channel.ts'
import { adoptRuntime } from '../lifecycle/adopt-runtime.ts'
import { reasonOf } from '../log.ts'
import { HeldSandbox } from './held-sandbox.ts'
import type { StartOrder, Work } from './pending-work.ts'
import { SandboxEnd } from './sandbox-end.ts'
import { SandboxStart } from './sandbox-start.ts'
import type { WorkerWorld } from './worker-world.ts'

export class SandboxWorker {
  readonly sandbox: string
  readonly #held: HeldSandbox
  readonly #start: SandboxStart
  readonly #end: SandboxEnd
  #task: Promise<void> | undefined

  constructor(world: WorkerWorld, sandbox: string, record: SandboxRecord | undefined, damaged = false) {
    this.sandbox = sandbox
    this.#held = new HeldSandbox(world, sandbox, record, damaged, () => this.#wake())
    this.#start = new SandboxStart(this.#held)
    this.#end = new SandboxEnd(this.#held)
  }

  get record(): SandboxRecord | undefined {
    return this.#held.record
  }

  /** Of the runtime that the record names, whatever its phase. */
  get runtimeName(): RuntimeName | undefined {
    return this.#held.runtimeName
  }

  get channel(): GuestChannel | undefined {
    return this.#held.channel
  }

  /** Nothing is known of it and nothing is on its way. */
  get idle(): boolean {
    return this.record === undefined && !this.#held.damaged && this.#task === undefined
  }

  takeStart(order: StartOrder): void {
    this.#held.pending.putStart(order)
    this.#wake()
  }

  takeEnd(order: EndOrder): void {
    this.#held.pending.putEnd(order)
    this.#start.abortIfCovered(order)
    this.#wake()
  }

  /** The runtime's process seems to be gone; it is looked at again before anything follows from that. */
  runtimeExited(): void {
    this.#held.noteExit()
  }

  /** Ends what is here, for a reason of the host's own; resolves when it is gone, or when it must be tried again later. */
  async endBecause(why: Ended, patience: AbortSignal): Promise<void> {
    this.#held.pending.putReason(why)
    // A launch that stands at a closed gate, or waits for its turn, would be waited for.
    this.#start.abort(new Error(why.detail ?? why.reason))
    this.#wake()
    while (this.#task !== undefined && !patience.aborted) await Promise.race([this.#task, aborted(patience)])
  }

  /** The sequence of a renewal that was sent after everything this worker has settled so far: see `recordTerm` and `mayForget`. */
  hearSeq(seq: number): void {
    const { record } = this
    if (record === undefined || (recordTerm(record, seq) === record && !mayForget(record, seq))) return
    this.#held.pending.putSeq(seq)
    this.#wake()
  }

  /** @throws Error when the runtime cannot be listened to, or does not know whose it is */
  async adopt(): Promise<void> {
    const { record } = this
    if (record === undefined || record.runtime === null) return
    const channel = await adoptRuntime(this.#held.world.lifecycle, this.#held.identityOf(record.runtime), record.runtime, this.#held.onLost)
    this.#held.channel = channel
    if (record.phase === 'launching') {
      // A claim that the last agent did not finish: only a guest that has the identity is let in.
      await channel.waitForSession(LIMITS.guestChannelWaitMs)
      await this.#held.write(recordRunning(record, record.runtime))
    }
    this.reportState()
  }

  /** Makes due again what the record says, unless it was answered. */
  reportState(): void {
    this.#held.reporter.state(this.record)
  }

  /** Waits for what is under way, without starting anything new; the runtime is left running. */
  async close(): Promise<void> {
    const reason = new Error('the host agent stops')
    this.#held.closing.abort(reason)
    this.#start.abort(reason)
    while (this.#task !== undefined) await this.#task
    await this.channel?.close()
  }

  #wake(): void {
    const { closing, log, pending } = this.#held
    this.#task ??= this.#drain()
      .catch((error) => {
        if (!closing.signal.aborted) log.error('sandbox.worker_failed', { reason: reasonOf(error) })
      })
      .finally(() => {
        this.#task = undefined
        // Something may have come after the last look.
        if (!closing.signal.aborted && pending.any(this.#held.ending)) this.#wake()
      })
  }

  async #drain(): Promise<void> {
    while (!this.#held.closing.signal.aborted) {
      const work = this.#held.pending.take(this.#held.ending)
      if (work === undefined) return
      await this.#do(work)
    }
  }

  #do(work: Work): Promise<void> {
    const held = this.#held
    switch (work.kind) {
      case 'obey_end':
        return held.insist(work.kind, () => this.#end.obey(work.order))
      case 'turn_to_end':
        return held.insist(work.kind, () => this.#end.turnToEnd(work.why))
      case 'note_exit':
        return held.insist(work.kind, () => this.#end.noteExit())
      case 'take_down':
        return held.insist(work.kind, () => this.#end.takeDown())
      case 'note_answered':
        return this.#end.noteAnswered(work.high)
      case 'note_seq':
        return this.#end.noteSeq(work.seq)
      case 'obey_start':
        return this.#start.obey(work.order)
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
