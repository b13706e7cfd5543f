/** A guest for tests of the host side: dials a channel as a guest agent does, and answers as the test says. */
import { once } from 'node:events'
import { createServer, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { connect, type Socket } from 'node:net'

export type Serve = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

export const BOOT_ID = '1'.repeat(32)

export function preambleLine(fields: object = {}): string {
  const preamble = {
    protocol: 'sandglass-guest',
    version: 1,
    agent: 'scripted',
    boot_id: BOOT_ID,
    session: '2'.repeat(32),
    sandbox: null,
    generation: null,
    features: [],
    ...fields,
  }
  return `${JSON.stringify(preamble)}\n`
}

export async function dial(path: string): Promise<Socket> {
  const socket = connect(path)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** The next line that the host sends, or undefined when it closes first. */
export function nextLine(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const finish = (line: string | undefined): void => {
      socket.off('data', onData).off('close', onClose)
      socket.pause()
      resolve(line)
    }
    const onClose = (): void => finish(undefined)
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk])
      const newline = bytes.indexOf(0x0a)
      if (newline === -1) return
      finish(bytes.subarray(0, newline).toString('utf8'))
      // What follows the line is HTTP/2.
      if (newline + 1 < bytes.byteLength) socket.unshift(bytes.subarray(newline + 1))
    }
    socket.on('data', onData).once('close', onClose)
  })
}

export class ScriptedGuest {
  readonly socket: Socket
  readonly #server: Http2Server
  readonly sessions: ServerHttp2Session[] = []

  private constructor(socket: Socket, serve: Serve) {
    this.socket = socket
    this.#server = createServer({ settings: { initialWindowSize: 1024 * 1024 } })
    this.#server.on('session', (session) => {
      this.sessions.push(session)
      session.on('error', () => {})
    })
    this.#server.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      serve(stream, headers)
    })
  }

  static async dial(path: string, serve: Serve, fields: object = {}): Promise<ScriptedGuest> {
    const socket = await dial(path)
    socket.write(preambleLine(fields))
    const answer = await nextLine(socket)
    if (answer === undefined || JSON.parse(answer).accept !== true) throw new Error(`turned away: ${answer ?? 'closed'}`)
    const guest = new ScriptedGuest(socket, serve)
    guest.#server.emit('connection', socket)
    return guest
  }

  vanish(): void {
    this.socket.destroy()
  }
}
