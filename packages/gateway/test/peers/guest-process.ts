/** A real guest agent, run as an ordinary process, and the host's end of its channel. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const BINARIES = [
  join(process.env['SANDGLASS_CACHE'] ?? '/var/cache/sandglass', 'guest-agent/sandglass-guest'),
  join(import.meta.dirname, '../../../../native/guest-agent/target/x86_64-unknown-linux-gnu/release/sandglass-guest'),
]

/** The one that was built last, of the installed and the one in the work tree. */
function guestAgentBinary(): string {
  const built = BINARIES.filter((path) => existsSync(path)).sort((left, right) => statSync(right).mtimeMs - statSync(left).mtimeMs)
  const [newest] = built
  if (newest === undefined) throw new Error(`the guest agent is not built: neither ${BINARIES.join(' nor ')} is there`)
  return newest
}

export class GuestProcess implements AsyncDisposable {
  /** A directory of this guest's own, for its files. */
  readonly directory: string
  readonly #channelDirectory: string
  readonly #server: Server
  #child: ChildProcess | undefined
  #session: ClientHttp2Session | undefined
  #waiting: ((session: ClientHttp2Session) => void)[] = []

  private constructor() {
    this.directory = mkdtempSync(join(tmpdir(), 'sandglass-guest-'))
    this.#channelDirectory = mkdtempSync(join(tmpdir(), 'sandglass-channel-'))
    this.#server = createServer((socket) => this.#accept(socket))
  }

  static async start(): Promise<GuestProcess> {
    const guest = new GuestProcess()
    const path = join(guest.#channelDirectory, 'channel.sock')
    guest.#server.listen(path)
    await once(guest.#server, 'listening')
    // A test that is killed takes its guest with it.
    guest.#child = spawn('setpriv', ['--pdeathsig', 'KILL', guestAgentBinary(), '--channel', path], { stdio: ['ignore', 'ignore', 'inherit'] })
    await guest.session()
    return guest
  }

  /** The present session, or the next one. */
  session(): Promise<ClientHttp2Session> {
    const session = this.#session
    if (session !== undefined && !session.destroyed) return Promise.resolve(session)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Cuts the channel; the guest dials again. */
  cutChannel(): void {
    this.#session?.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child
    if (child !== undefined && child.exitCode === null) {
      await this.#endProcesses()
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    this.#session?.destroy()
    this.#server.close()
    rmSync(this.directory, { recursive: true, force: true })
    rmSync(this.#channelDirectory, { recursive: true, force: true })
  }

  /** Outside of a sandbox they would outlive their agent. */
  async #endProcesses(): Promise<void> {
    const { items } = JSON.parse(await this.#ask('GET', '/v1/processes')) as { items: { id: string }[] }
    await Promise.all(items.map(({ id }) => this.#ask('POST', `/v1/processes/${id}/signal`, '{"signal":"KILL","tree":true}')))
  }

  async #ask(method: string, path: string, body = ''): Promise<string> {
    const stream = (await this.session()).request({ ':method': method, ':path': path, 'content-type': 'application/json' }, { endStream: false })
    stream.end(body)
    let text = ''
    for await (const chunk of stream) text += chunk
    return text
  }

  #accept(socket: Socket): void {
    socket.on('error', () => undefined)
    let preamble = Buffer.alloc(0)
    const read = () => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) preamble = Buffer.concat([preamble, chunk])
      if (!preamble.includes(0x0a)) return
      socket.off('readable', read)
      socket.write(`${JSON.stringify({ accept: true, version: 1, epoch: 1 })}\n`)
      const session = connect('http://guest', { createConnection: () => socket, settings: { enablePush: false, initialWindowSize: 1 << 20 } })
      session.on('error', () => undefined)
      session.once('connect', () => {
        session.setLocalWindowSize(16 << 20)
        this.#session = session
        for (const resolve of this.#waiting.splice(0)) resolve(session)
      })
    }
    socket.on('readable', read)
  }
}
