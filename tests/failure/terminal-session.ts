/** A terminal over its WebSocket, spoken by hand: what arrives is kept, and a cut connection is a fact that can be asked for. */
import { encodeClientFrame, parseServerFrame, WS_SUBPROTOCOL } from '@sandglass/contract/gateway-frames'
import { type Api, dataUrl, NoAnswer, type Where } from './api.ts'
import { until } from './persist.ts'

const CREDIT_BYTES = 1024 * 1024
const OPEN_LIMIT_MS = 30_000

export class TerminalSession implements Disposable {
  readonly #socket: WebSocket
  readonly #decoder = new TextDecoder()
  #text = ''
  #ended: string | undefined
  #processId: string | undefined
  #offset = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.binaryType = 'arraybuffer'
    socket.addEventListener('open', () => socket.send(encodeClientFrame({ channel: 'credit', bytes: CREDIT_BYTES })))
    socket.addEventListener('message', (event) => {
      const data: unknown = event.data
      if (data instanceof ArrayBuffer) this.#take(new Uint8Array(data))
    })
    // `close` follows; this listener only keeps the event from being reported as unhandled.
    socket.addEventListener('error', () => undefined)
    socket.addEventListener('close', (event) => {
      this.#ended ??= `closed ${event.code} ${event.reason}`
    })
  }

  #take(bytes: Uint8Array): void {
    const frame = parseServerFrame(bytes)
    if (frame.channel === 'stdout') {
      this.#offset += frame.bytes.byteLength
      this.#text += this.#decoder.decode(frame.bytes, { stream: true })
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(encodeClientFrame({ channel: 'credit', bytes: frame.bytes.byteLength }))
      return
    }
    if (frame.channel !== 'status') return
    if (frame.status.type === 'started') {
      this.#processId = frame.status.process.id
      this.#offset = frame.status.stdout_offset
    } else if (frame.status.type === 'error') this.#ended = `error ${frame.status.code}: ${frame.status.detail}`
    else if (frame.status.type === 'exit') this.#ended = `the shell exited with ${frame.status.process.exit_code}`
  }

  /** @param query `key=…` for a new terminal, `id=…&since=…` to come back. @throws NoAnswer when it did not open */
  static async open(api: Api, where: Where, query: string): Promise<TerminalSession> {
    const url = dataUrl(where, `/terminal?${query}`).replace(/^http/, 'ws')
    const session = new TerminalSession(new WebSocket(url, { protocols: [WS_SUBPROTOCOL], headers: { ...api.authorization } }))
    try {
      await until(OPEN_LIMIT_MS, 'the terminal opening', () => session.#processId ?? (session.#ended === undefined ? undefined : ''))
      if (session.#ended !== undefined) throw new Error(session.#ended)
      return session
    } catch (cause) {
      session[Symbol.dispose]()
      throw new NoAnswer(`terminal of ${where.id}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    }
  }

  get processId(): string {
    return this.#processId ?? ''
  }

  /** Of the next byte of output. */
  get offset(): number {
    return this.#offset
  }

  /** Why the connection is over, or undefined while it stands. */
  get ended(): string | undefined {
    return this.#ended
  }

  type(line: string): void {
    this.#socket.send(encodeClientFrame({ channel: 'stdin', bytes: new TextEncoder().encode(`${line}\n`) }))
  }

  /**
   * Has the shell say something, and waits for it. The answer is put together from two parts, so that the echo of the question is not it.
   * @throws NoAnswer when the connection ends before
   */
  async ask(expression: string, tag: string, limitMs: number): Promise<string> {
    // Ctrl-U first: a line that a crash cut in half may still stand in the shell's line editor.
    this.type(`\u0015echo "<${tag}"'>'"${expression}"'<'"/${tag}>"`)
    const pattern = new RegExp(`<${tag}>([^<]*)</${tag}>`)
    const found = await until(limitMs, `the shell answering ${tag}`, () => {
      const match = pattern.exec(this.#text)
      if (match !== null) return match
      return this.#ended === undefined ? undefined : null
    })
    if (found === null) throw new NoAnswer(`terminal: ${this.#ended}`)
    this.#text = ''
    return found[1] ?? ''
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }
}
