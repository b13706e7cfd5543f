/**
 * How the input of a session gets to its process.
 *
 * In requests, one for each batch; but a terminal's flows on one that stays open (stdin-stream.ts). A guest from before there was such a
 * thing refuses it and has written nothing, so its input goes in requests. Where it is not known whether the first batch arrived, it is sent
 * again in a request if it names its offset, which leaves out what did. What has begun to flow and breaks is lost contact: only the process
 * knows how much of it came, and the client asks it when it comes back.
 */
import { parserOf, StdinAcceptedSchema, WRITER_HEADER } from '@sandglass/contract'
import type { GuestClient } from '../hosts/guest-client.ts'
import { guestQuery } from '../http/raw-query.ts'
import { codedError } from '../problems/send-problem.ts'
import type { Input, SessionEvent } from './session-events.ts'
import { StdinStream } from './stdin-stream.ts'

const accepted = parserOf(StdinAcceptedSchema)

export type StdinSenderOptions = { readonly guest: GuestClient; readonly signal: AbortSignal; readonly tell: (event: SessionEvent) => void }

export class StdinSender {
  readonly #options: StdinSenderOptions
  #stream: StdinStream | undefined
  /** Of what flows; true when all of it arrived. */
  #flow: Promise<boolean> | undefined
  #flows = true

  constructor(options: StdinSenderOptions) {
    this.#options = options
  }

  /** Never rejects; what becomes of it is told. */
  async send(input: Input): Promise<void> {
    const { isTerminal, batch } = input
    if (this.#flow !== undefined) {
      this.#stream?.write(batch.bytes)
      if (batch.close) await this.#close(input)
    } else if (isTerminal && this.#flows && !batch.close) await this.#begin(input)
    else await this.#request(input)
  }

  /** All input of the session was sent. */
  end(): void {
    this.#stream?.end()
  }

  async #begin(input: Input): Promise<void> {
    const { process, batch } = input
    const { guest, signal, tell } = this.#options
    const onReceipt = (bytes: number) => tell({ type: 'stdinReceipted', bytes })
    const stream = new StdinStream({ guest, process, offset: batch.offset, signal, onReceipt })
    this.#stream = stream
    try {
      await stream.open(batch.bytes)
    } catch (cause) {
      this.#stream = undefined
      this.#flows = false
      const error = codedError(cause)
      if (batch.offset !== undefined || error.code === 'invalid_request') await this.#request(input)
      else tell({ type: 'stdinRefused', error })
      return
    }
    this.#flow = this.#run(stream)
    tell({ type: 'stdinFlows' })
  }

  async #run(stream: StdinStream): Promise<boolean> {
    try {
      await stream.run()
      return true
    } catch (error) {
      this.#options.tell({ type: 'stdinRefused', error: codedError(error) })
      return false
    }
  }

  /** An end of input has its place behind everything that flows. */
  async #close(input: Input): Promise<void> {
    this.end()
    if (await this.#flow) await this.#request({ ...input, batch: { bytes: new Uint8Array(0), offset: undefined, close: true } })
  }

  async #request({ process, batch, writer }: Input): Promise<void> {
    const { guest, signal, tell } = this.#options
    const { bytes, offset, close } = batch
    const path = `/v1/processes/${process}/stdin${guestQuery({ offset, close: close ? 1 : undefined })}`
    // With an offset a repeat is harmless.
    const isRepeatable = offset !== undefined
    try {
      const headers = writer === undefined ? {} : { [WRITER_HEADER]: writer }
      await guest.json({ method: 'POST', path, headers, body: bytes, isRepeatable, isLong: true, signal }, accepted)
      tell({ type: 'stdinAccepted' })
    } catch (error) {
      tell({ type: 'stdinRefused', error: codedError(error) })
    }
  }
}
