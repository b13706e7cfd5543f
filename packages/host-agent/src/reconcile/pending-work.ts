/**
 * What a sandbox's worker was told and has not done yet.
 *
 * A place for each kind (the newest ticket, the furthest end, the last reason), never a queue, so a control plane that repeats itself costs
 * nothing. Ends come before starts.
 */
import type { EndOrder, RuntimeSpec, StartTicket } from '@sandglass/contract'
import type { Ended } from '../domain/sandbox-record.ts'

export type StartOrder = {
  readonly ticket: StartTicket
  readonly spec: RuntimeSpec
  /** Of the create that it is for; undefined when that is in no trace. */
  readonly traceparent: string | undefined
  readonly heardAtMs: number
}

export type Work =
  | { readonly kind: 'obey_end'; readonly order: EndOrder }
  /** For a reason of the host's own. */
  | { readonly kind: 'turn_to_end'; readonly why: Ended }
  /** The runtime's process seems to be gone. */
  | { readonly kind: 'note_exit' }
  /** The record is ending: go on with it. */
  | { readonly kind: 'take_down' }
  /** The report of the end up to this mark was answered. */
  | { readonly kind: 'note_answered'; readonly high: number }
  | { readonly kind: 'note_seq'; readonly seq: number }
  | { readonly kind: 'obey_start'; readonly order: StartOrder }

export class PendingWork {
  #end: EndOrder | undefined
  #why: Ended | undefined
  #exited = false
  #answered: number | undefined
  #seq: number | undefined
  #start: StartOrder | undefined
  /** A newer start that waits until the older runtime is gone. */
  #held: StartOrder | undefined

  putStart(order: StartOrder): void {
    if (this.#start === undefined || this.#start.ticket.generation <= order.ticket.generation) this.#start = order
  }

  holdStart(order: StartOrder): void {
    this.#held = order
  }

  /** The older runtime is gone. A start that was put meanwhile comes first. */
  releaseHeld(): void {
    if (this.#held === undefined) return
    this.#start ??= this.#held
    this.#held = undefined
  }

  putEnd(order: EndOrder): void {
    if (this.#end === undefined || this.#end.upto <= order.upto) this.#end = order
  }

  putReason(why: Ended): void {
    this.#why = why
  }

  putExit(): void {
    this.#exited = true
  }

  putAnswered(high: number): void {
    this.#answered = high
  }

  putSeq(seq: number): void {
    this.#seq = seq
  }

  /** @param ending the record is in that phase */
  any(ending: boolean): boolean {
    const places = [this.#end, this.#why, this.#answered, this.#seq, this.#start]
    return this.#exited || ending || places.some((place) => place !== undefined)
  }

  /** The next thing to do; its place is free again. */
  take(ending: boolean): Work | undefined {
    const end = this.#end
    if (end !== undefined) {
      this.#end = undefined
      return { kind: 'obey_end', order: end }
    }
    const why = this.#why
    if (why !== undefined) {
      this.#why = undefined
      return { kind: 'turn_to_end', why }
    }
    if (this.#exited) {
      this.#exited = false
      return { kind: 'note_exit' }
    }
    if (ending) return { kind: 'take_down' }
    const high = this.#answered
    if (high !== undefined) {
      this.#answered = undefined
      return { kind: 'note_answered', high }
    }
    const seq = this.#seq
    if (seq !== undefined) {
      this.#seq = undefined
      return { kind: 'note_seq', seq }
    }
    const start = this.#start
    if (start === undefined) return undefined
    this.#start = undefined
    return { kind: 'obey_start', order: start }
  }
}
