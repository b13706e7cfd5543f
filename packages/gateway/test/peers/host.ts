/** A host agent's data plane: HTTP/2 over TLS, with a script in place of what is behind it, or a real guest. */
import { createSecureServer, type Http2SecureServer, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { type Certified, TEST_AUTHORITY, type TestAuthority } from '@sandglass/testkit'
import type { GuestProcess } from './guest-process.ts'

export type HostRequest = {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly method: string
  /** Of the guest protocol, with the raw query. */
  readonly path: string
  readonly sandbox: string
  readonly generation: number
}

export const HOST_ID = `ho${'a'.repeat(16)}`

export type HostScript = (request: HostRequest) => void

export class ScriptedHost implements AsyncDisposable {
  script: HostScript
  readonly requests: HostRequest[] = []
  readonly sessions = new Set<ServerHttp2Session>()
  sessionsOpened = 0
  readonly #server: Http2SecureServer

  private constructor(script: HostScript, certified: Certified & { readonly by?: TestAuthority }) {
    this.script = script
    this.#server = createSecureServer({
      ...(certified.by ?? TEST_AUTHORITY).server(certified),
      settings: { initialWindowSize: 1 << 20, maxConcurrentStreams: 1_024 },
      maxSessionMemory: 256,
      streamResetBurst: 100_000,
      streamResetRate: 10_000,
    })
    this.#server.on('session', (session) => {
      this.sessionsOpened += 1
      this.sessions.add(session)
      session.on('error', () => undefined)
      session.once('close', () => this.sessions.delete(session))
    })
    this.#server.on('stream', (stream, headers) => this.#accept(stream, headers))
  }

  /** @param certified whose certificate it shows; default: of the host that routes name */
  static async start(script: HostScript, certified: Certified & { readonly by?: TestAuthority } = { role: 'host', name: HOST_ID }): Promise<ScriptedHost> {
    const host = new ScriptedHost(script, certified)
    await new Promise<void>((resolve) => host.#server.listen(0, '127.0.0.1', resolve))
    return host
  }

  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('no address')
    return `https://127.0.0.1:${address.port}`
  }

  cut(): void {
    for (const session of this.sessions) session.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', () => undefined)
    const match = /^\/sandboxes\/([a-z0-9]+)\/generations\/([0-9]+)(\/.*)$/.exec(headers[':path'] ?? '')
    if (match === null) {
      refuse(stream, 401, 'unauthenticated')
      return
    }
    const request = { stream, headers, method: headers[':method'] ?? '', path: match[3] ?? '', sandbox: match[1] ?? '', generation: Number(match[2]) }
    this.requests.push(request)
    this.script(request)
  }
}

/** As a host agent refuses by itself. */
export function refuse(stream: ServerHttp2Stream, status: number, code: string): void {
  stream.respond({ ':status': status, 'content-type': 'application/json', 'sandglass-from': 'host' })
  stream.end(JSON.stringify({ code, detail: `The host says ${code}.` }))
}

/** As a guest answers. */
export function answerJson(stream: ServerHttp2Stream, status: number, value: unknown): void {
  stream.respond({ ':status': status, 'content-type': 'application/json' })
  stream.end(JSON.stringify(value))
}

/** Pipes every request to a real guest agent. */
export function guestScript(guest: GuestProcess, generation: () => number): HostScript {
  return (request) => {
    if (request.generation === generation()) void pipeToGuest(guest, request)
    else refuse(request.stream, 409, 'stale_generation')
  }
}

async function pipeToGuest(guest: GuestProcess, { stream, headers, path }: HostRequest): Promise<void> {
  const { authorization: _, ...rest } = headers
  const session = await guest.session()
  const upstream = session.request({ ...rest, ':path': path, ':authority': 'guest' }, { endStream: stream.endAfterHeaders })
  const breakBoth = () => {
    if (!stream.destroyed) stream.destroy(new Error('cut'))
    if (!upstream.destroyed) upstream.destroy(new Error('cut'))
  }
  stream.on('aborted', breakBoth)
  stream.on('error', breakBoth)
  upstream.on('error', breakBoth)
  // A session that is cut before the answer began gives its streams neither an error nor an end.
  upstream.on('close', () => {
    if (!upstream.readableEnded) breakBoth()
  })
  stream.on('close', () => {
    if (!upstream.readableEnded) breakBoth()
  })
  let trailers: IncomingHttpHeaders = {}
  upstream.on('trailers', (received) => {
    trailers = received
  })
  upstream.on('response', (answer) => {
    stream.respond(answer, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    upstream.on('data', (chunk) => {
      if (!stream.write(chunk)) upstream.pause()
    })
    stream.on('drain', () => upstream.resume())
    upstream.on('end', () => (upstream.rstCode === 0 ? stream.end() : breakBoth()))
  })
  if (!stream.endAfterHeaders) stream.pipe(upstream)
}
