/** A server of HTTP and WebSockets on loopback whose every answer is scripted by the test, and which remembers what it was asked. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CodedError, type ErrorCode } from '@sandglass/contract/errors'
import { type ClientFrame, encodeServerFrame, parseClientFrame, type ServerStatus, WS_SUBPROTOCOL } from '@sandglass/contract/gateway-frames'
import { problemOf } from '@sandglass/contract/problem'
import { type WebSocket, WebSocketServer } from 'ws'

export type Asked = {
  readonly method: string
  readonly path: string
  /** As it was sent, percent-encoding untouched. */
  readonly rawQuery: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

export type Answer = {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly json?: unknown
  readonly body?: string | Uint8Array
}

/** `drop`: the connection breaks without an answer. */
export type Script = (asked: Asked, response: ServerResponse) => Answer | 'drop' | 'answered' | Promise<Answer | 'drop' | 'answered'>

export type Peer = {
  readonly socket: WebSocket
  readonly url: string
  status(status: ServerStatus): void
  output(stream: 'stdout' | 'stderr', bytes: Uint8Array): void
  credit(bytes: number): void
  /** Breaks the connection as a network does: without a close frame. */
  cut(): void
}

export type SocketScript = (peer: Peer, frame: ClientFrame) => void

export function problem(code: ErrorCode, detail?: string, extra: Record<string, string> = {}): Answer {
  const body = problemOf(new CodedError(code, detail), { requestId: 'rqaaaaaaaaaaaaaaaa' })
  return { status: body.status, headers: { 'content-type': 'application/problem+json', ...extra }, json: body }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export class ScriptedServer implements AsyncDisposable {
  readonly asked: Asked[] = []
  readonly sockets: Peer[] = []
  /** What a WebSocket upgrade is refused with; undefined accepts it. */
  refuseUpgrade: Answer | undefined
  onSocket: SocketScript = (peer) => peer.cut()
  readonly #routes: { readonly method: string; readonly path: RegExp; readonly script: Script }[] = []
  readonly #server: Server
  readonly #webSockets = new WebSocketServer({ noServer: true, handleProtocols: () => WS_SUBPROTOCOL })

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy())
    })
    this.#server.on('upgrade', (request, socket, head) => {
      if (this.refuseUpgrade !== undefined) {
        const body = JSON.stringify(this.refuseUpgrade.json)
        socket.end(`HTTP/1.1 ${this.refuseUpgrade.status} X\r\ncontent-type: application/problem+json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
        return
      }
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => this.#join(webSocket, request.url ?? ''))
    })
  }

  static async start(): Promise<ScriptedServer> {
    const server = new ScriptedServer()
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get url(): string {
    const address = this.#server.address() as AddressInfo
    return `http://127.0.0.1:${address.port}`
  }

  /** Later scripts for the same path win. */
  on(method: string, path: RegExp, script: Script): void {
    this.#routes.unshift({ method, path, script })
  }

  countOf(method: string, path: RegExp): number {
    return this.asked.filter((asked) => asked.method === method && path.test(asked.path)).length
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '', rawQuery = ''] = (request.url ?? '').split('?')
    const asked: Asked = {
      method: request.method ?? '',
      path,
      rawQuery,
      query: new URLSearchParams(rawQuery),
      headers: request.headers,
      body: await bodyOf(request),
    }
    this.asked.push(asked)
    const route = this.#routes.find((candidate) => candidate.method === asked.method && candidate.path.test(path))
    const answer = route === undefined ? problem('route_not_found', `${asked.method} ${path} is not scripted.`) : await route.script(asked, response)
    if (answer === 'answered') return
    if (answer === 'drop') {
      request.socket.destroy()
      return
    }
    const json = answer.json === undefined ? undefined : JSON.stringify(answer.json)
    response.writeHead(answer.status, { ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...answer.headers })
    response.end(json ?? answer.body)
  }

  #join(socket: WebSocket, url: string): void {
    const peer: Peer = {
      socket,
      url,
      status: (status) => socket.send(encodeServerFrame({ channel: 'status', status })),
      output: (stream, bytes) => socket.send(encodeServerFrame({ channel: stream, bytes })),
      credit: (bytes) => socket.send(encodeServerFrame({ channel: 'credit', bytes })),
      cut: () => socket.terminate(),
    }
    this.sockets.push(peer)
    socket.on('message', (data) => {
      if (data instanceof Buffer) this.onSocket(peer, parseClientFrame(data))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { socket } of this.sockets) socket.terminate()
    this.#webSockets.close()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
