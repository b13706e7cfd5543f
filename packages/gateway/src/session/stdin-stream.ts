/**
 * The input of a terminal on one request that stays open: a key costs a frame on each hop, and not a request.
 *
 * What is written is bounded by the client's credit, which waits for the guest's receipts; so nothing here needs to wait for a drain. Until the
 * guest has begun to answer it may still refuse, having written nothing; more is written only then.
 */
import type { ClientHttp2Stream } from 'node:http2'
import { parserOf, StdinReceiptSchema } from '@sandglass/contract'
import type { BodyPump, GuestClient } from '../hosts/guest-client.ts'
import { type HostAnswer, lostContact } from '../hosts/host-answer.ts'
import { jsonLines } from '../http/json-lines.ts'
import { guestQuery } from '../http/raw-query.ts'
import { upstreamError } from '../problems/guest-problem.ts'

const receipt = parserOf(StdinReceiptSchema)

export type StdinStreamOptions = {
  readonly guest: GuestClient
  /** `pr…` */
  readonly process: string
  /** Of the first byte. */
  readonly offset: number | undefined
  readonly signal: AbortSignal
  /** So many bytes more have arrived. */
  readonly onReceipt: (bytes: number) => void
}

export class StdinStream {
  readonly #options: StdinStreamOptions
  #stream: ClientHttp2Stream | undefined
  #answer: HostAnswer | undefined
  #sentBytes = 0
  #receiptedBytes = 0
  #isEnding = false

  constructor(options: StdinStreamOptions) {
    this.#options = options
  }

  /** Resolves when more may be written. @throws CodedError */
  async open(first: Uint8Array): Promise<void> {
    const { guest, process, offset, signal } = this.#options
    const path = `/v1/processes/${process}/stdin${guestQuery({ offset, stream: 1 })}`
    const body: BodyPump = (stream) => {
      this.#stream = stream
      this.write(first)
      if (this.#isEnding) stream.end()
      return new Promise<never>(() => undefined)
    }
    this.#answer = await guest.send({ method: 'POST', path, body, isRepeatable: false, isLong: true, signal })
  }

  write(bytes: Uint8Array): void {
    this.#sentBytes += bytes.byteLength
    this.#stream?.write(bytes)
  }

  /** Nothing more comes. */
  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#stream?.end()
  }

  /** Tells receipts until all is receipted after the end. @throws CodedError why what was not receipted may not have arrived */
  async run(): Promise<void> {
    const answer = this.#answer
    if (answer === undefined) throw new Error('the stream of input is not open')
    for await (const line of jsonLines(answer.chunks(), receipt)) {
      if (line.type === 'error') throw upstreamError('guest', line.code, line.detail)
      const bytes = line.bytes - this.#receiptedBytes
      if (bytes < 0 || line.bytes > this.#sentBytes) throw lostContact()
      this.#receiptedBytes = line.bytes
      this.#options.onReceipt(bytes)
    }
    if (!this.#isEnding || this.#receiptedBytes !== this.#sentBytes) throw lostContact()
  }
}
