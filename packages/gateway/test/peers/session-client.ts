/** A client of the WebSocket protocol that counts what it is allowed and what it gets. */
import assert from 'node:assert/strict'
import { type ClientFrame, type ClientStatus, encodeClientFrame, parseServerFrame, type ServerStatus, WS_SUBPROTOCOL } from '@sandglass/contract'
import { WebSocket } from 'ws'

export type Closed = { readonly code: number; readonly reason: string }

export type Connect = {
  readonly url: string
  readonly headers?: Record<string, string>
  readonly protocols?: readonly string[]
}

/** An upgrade that was refused. */
export class Refused extends Error {
  readonly status: number
  readonly body: string
  constructor(status: number, body: string) {
    super(`refused with ${status}: ${body}`)
    this.status = status
    this.body = body
  }
}

export class SessionClient {
  readonly socket: WebSocket
  readonly statuses: ServerStatus[] = []
  readonly closed: Promise<Closed>
  readonly received = { stdout: 0, stderr: 0 }
  /** Gives back credit for what comes. */
  isReading = true
  stdinCredit = 0
  onData: (stream: 'stdout' | 'stderr', bytes: Buffer) => void = () => undefined
  #creditLeft = 0
  #data: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
  #changed: (() => void)[] = []

  private constructor(socket: WebSocket) {
    this.socket = socket
    this.closed = new Promise((resolve) => socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })))
    socket.on('message', (data) => {
      if (!Buffer.isBuffer(data)) throw new Error('not a buffer')
      this.#receive(data)
      this.#wake()
    })
    socket.once('close', () => this.#wake())
  }

  /** @throws Refused */
  static async connect({ url, headers = {}, protocols = [WS_SUBPROTOCOL] }: Connect): Promise<SessionClient> {
    const socket = new WebSocket(url.replace(/^http/, 'ws'), [...protocols], { headers, perMessageDeflate: true })
    socket.on('error', () => undefined)
    const client = new SessionClient(socket)
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve)
      socket.once('unexpected-response', (_request, response) => {
        let body = ''
        response.on('data', (chunk) => {
          body += chunk
        })
        response.on('end', () => reject(new Refused(response.statusCode ?? 0, body)))
      })
    })
    return client
  }

  send(frame: ClientFrame): void {
    this.socket.send(encodeClientFrame(frame))
  }

  begin(status: ClientStatus): void {
    this.#creditLeft += status.credit_bytes
    this.send({ channel: 'status', status })
  }

  credit(bytes: number): void {
    this.#creditLeft += bytes
    this.send({ channel: 'credit', bytes })
  }

  /** Sends input within the server's credit. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let rest = bytes; rest.byteLength > 0; ) {
      await this.until(() => this.stdinCredit > 0)
      const piece = rest.subarray(0, Math.min(this.stdinCredit, 60_000))
      this.stdinCredit -= piece.byteLength
      this.send({ channel: 'stdin', bytes: piece })
      rest = rest.subarray(piece.byteLength)
    }
  }

  bytes(stream: 'stdout' | 'stderr'): Buffer {
    return Buffer.concat(this.#data[stream])
  }

  text(stream: 'stdout' | 'stderr' = 'stdout'): string {
    return this.bytes(stream).toString()
  }

  /** Does not keep what comes, only counts it. */
  countOnly(): void {
    this.#data = { stdout: [], stderr: [] }
    this.onData = () => {
      this.#data = { stdout: [], stderr: [] }
    }
  }

  async status<T extends ServerStatus['type']>(type: T): Promise<Extract<ServerStatus, { type: T }>> {
    const find = () => this.statuses.find((status): status is Extract<ServerStatus, { type: T }> => status.type === type)
    await this.until(() => find() !== undefined || this.socket.readyState === WebSocket.CLOSED)
    const status = find()
    assert.ok(status, `closed without ${type}: ${JSON.stringify(this.statuses)}`)
    return status
  }

  /** Waits, with a bound, for something that a message changes. */
  async until(condition: () => boolean, boundMs = 30_000): Promise<void> {
    const deadline = Date.now() + boundMs
    while (!condition()) {
      const leftMs = deadline - Date.now()
      assert.ok(leftMs > 0, `waited ${boundMs} ms in vain; statuses ${JSON.stringify(this.statuses).slice(0, 500)}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs)
        this.#changed.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  /** Goes away without a word. */
  drop(): void {
    this.socket.terminate()
  }

  #wake(): void {
    for (const wake of this.#changed.splice(0)) wake()
  }

  #receive(data: Buffer): void {
    const frame = parseServerFrame(data)
    if (frame.channel === 'credit') this.stdinCredit += frame.bytes
    else if (frame.channel === 'status') {
      this.statuses.push(frame.status)
      if (frame.status.type === 'started') this.stdinCredit += frame.status.stdin_credit_bytes
    } else {
      this.#creditLeft -= frame.bytes.byteLength
      assert.ok(this.#creditLeft >= 0, 'more output than credited')
      this.received[frame.channel] += frame.bytes.byteLength
      this.#data[frame.channel].push(Buffer.from(frame.bytes))
      this.onData(frame.channel, Buffer.from(frame.bytes))
      if (this.isReading) this.credit(frame.bytes.byteLength)
    }
  }
}
