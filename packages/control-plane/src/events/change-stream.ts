/**
 * One reader of the change feed. It reads a page from the tables, writes it, waits until the client has taken it, and only then reads on: what a slow
 * reader costs is one page. One that takes nothing at all is cut, without a last word, since it would not take that either; every event carries
 * its position, so it comes back where it was.
 *
 * Positions have no hole, so a page that does not begin right behind the last event says by itself what is gone.
 */
import type { Writable } from 'node:stream'
import { type Change, type ChangeGap, type ChangePosition, CodedError, problemOf } from '@sandglass/contract'
import type { SealedEventRow } from '../store/events.ts'

const PAGE = 200
/** Time for an EventSource to wait before it comes back. */
const RETRY_MS = 1_000

export type ChangeSource = {
  readonly head: () => Promise<number>
  readonly after: (position: number, limit: number) => Promise<readonly SealedEventRow[]>
}

/** Where a reader wants to go on; `unknown`: it named a place that no feed has. */
export type Since = number | 'now' | 'unknown'

export type ChangeStreamOptions = {
  readonly source: ChangeSource
  readonly output: Writable
  readonly since: Since
  readonly requestId: string
  readonly heartbeatMs: number
  readonly stallMs: number
}

export class ChangeStream {
  readonly #options: ChangeStreamOptions
  readonly #over = Promise.withResolvers<void>()
  #isOver = false
  #position = 0
  #head = 0
  #wake: () => void = () => undefined

  constructor(options: ChangeStreamOptions) {
    this.#options = options
    options.output.once('close', () => this.#finish())
    options.output.on('error', () => this.#finish())
  }

  /** To its end. Never rejects. */
  async run(): Promise<void> {
    const { output, heartbeatMs } = this.#options
    const heartbeat = setInterval(() => {
      if (!output.writableNeedDrain) this.#write('heartbeat', this.#place())
    }, heartbeatMs)
    try {
      await this.#begin()
      while (!this.#isOver) await this.#readOn()
    } catch (error) {
      this.end(error instanceof CodedError ? error : new CodedError('internal', undefined, { cause: error }))
    } finally {
      clearInterval(heartbeat)
    }
  }

  /** The feed goes up to here. */
  seeHead(head: number): void {
    this.#head = Math.max(this.#head, head)
    if (this.#head > this.#position) this.#wake()
  }

  /** Says why, and ends. */
  end(reason: CodedError): void {
    if (this.#isOver) return
    this.#write('error', problemOf(reason, { requestId: this.#options.requestId }))
    this.#options.output.end()
    this.#finish()
  }

  async #begin(): Promise<void> {
    const { source, since, output } = this.#options
    this.#head = await source.head()
    output.write(`retry: ${RETRY_MS}\n\n`)
    const isKnown = typeof since === 'number' && since <= this.#head
    this.#position = isKnown ? since : this.#head
    if (!isKnown && since !== 'now') this.#write('gap', { position: this.#position, reason: 'unknown', from: null })
    this.#write('ready', this.#place())
  }

  async #readOn(): Promise<void> {
    if (this.#head <= this.#position) {
      await this.#untilHeadMoves()
      return
    }
    const head = this.#head
    const rows = await this.#options.source.after(this.#position, PAGE)
    if (this.#isOver) return
    const goneUpTo = (rows[0]?.position ?? head + 1) - 1
    if (goneUpTo > this.#position) {
      const from = this.#position + 1
      this.#position = goneUpTo
      this.#write('gap', { position: goneUpTo, reason: 'expired', from })
    }
    for (const row of rows) {
      this.#position = row.position
      this.#write('change', changeOf(row))
    }
    await this.#untilTaken()
  }

  async #untilHeadMoves(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    await Promise.race([promise, this.#over.promise])
  }

  async #untilTaken(): Promise<void> {
    const { output, stallMs } = this.#options
    if (!output.writableNeedDrain) return
    const { promise, resolve } = Promise.withResolvers<void>()
    output.once('drain', resolve)
    const timer = setTimeout(() => {
      output.destroy()
      resolve()
    }, stallMs)
    await Promise.race([promise, this.#over.promise])
    clearTimeout(timer)
    output.off('drain', resolve)
  }

  #place(): ChangePosition {
    return { position: this.#position }
  }

  #write(event: 'change', data: Change): void
  #write(event: 'gap', data: ChangeGap): void
  #write(event: 'ready' | 'heartbeat', data: ChangePosition): void
  #write(event: 'error', data: object): void
  #write(event: string, data: object): void {
    if (this.#isOver || this.#options.output.destroyed) return
    // JSON has no raw newlines, so one `data:` line is enough.
    this.#options.output.write(`id: ${this.#position}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }

  #finish(): void {
    this.#isOver = true
    this.#over.resolve()
  }
}

const changeOf = ({ position, type, sandbox_id, generation, reason, at }: SealedEventRow): Change => ({
  position,
  type,
  sandbox_id,
  generation,
  reason,
  at: at.toISOString(),
})
