/** A WebSocket to the gateway by hand: any bytes out, every frame in. */
import { encodeClientFrame, parseServerFrame, type ServerFrame, WS_SUBPROTOCOL } from '@sandglass/contract'
import { within } from '../bounds.ts'

export type Closed = { readonly code: number; readonly reason: string }

export class HandSocket implements AsyncDisposable {
  readonly #socket: WebSocket
  readonly frames: ServerFrame[] = []
  readonly closed: Promise<Closed>
  readonly #opened: Promise<boolean>

  constructor(url: string, key: string, protocols: string[] = [WS_SUBPROTOCOL]) {
    this.#socket = new WebSocket(url.replace(/^http/, 'ws'), { protocols, headers: { authorization: `Bearer ${key}` } })
    this.#socket.binaryType = 'arraybuffer'
    this.#socket.addEventListener('message', ({ data }: { readonly data: unknown }) => {
      if (data instanceof ArrayBuffer) this.frames.push(parseServerFrame(new Uint8Array(data)))
    })
    this.#socket.addEventListener('error', () => undefined)
    this.closed = new Promise((resolve) => this.#socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason })))
    this.#opened = new Promise((resolve) => {
      this.#socket.addEventListener('open', () => resolve(true))
      this.#socket.addEventListener('close', () => resolve(false))
    })
  }

  opened(): Promise<boolean> {
    return within(20_000, 'an answer to the upgrade', this.#opened)
  }

  send(data: Uint8Array<ArrayBuffer> | string): void {
    this.#socket.send(data)
  }

  frame(...message: Parameters<typeof encodeClientFrame>): void {
    this.send(new Uint8Array(encodeClientFrame(...message)))
  }

  ended(limitMs = 20_000): Promise<Closed> {
    return within(limitMs, 'the end of the session', this.closed)
  }

  /** Codes of the error frames that came. */
  get errors(): string[] {
    return this.frames.flatMap((frame) => (frame.channel === 'status' && frame.status.type === 'error' ? [frame.status.code] : []))
  }

  status(type: string): boolean {
    return this.frames.some((frame) => frame.channel === 'status' && frame.status.type === type)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    await within(30_000, 'the end of the socket', this.closed)
  }
}
