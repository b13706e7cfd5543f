/** A TCP proxy between a client and one address; what it does to them is its kind's. */
import net from 'node:net'

export abstract class TcpProxy implements AsyncDisposable {
  readonly #server: net.Server
  protected readonly sockets = new Set<net.Socket>()

  protected constructor(target: URL) {
    this.#server = net.createServer((client) => this.#join(client, net.connect(Number(target.port), target.hostname)))
  }

  protected async listen(): Promise<this> {
    await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(0, '127.0.0.1', resolve))
    return this
  }

  get url(): string {
    const address = this.#server.address()
    if (typeof address !== 'object' || address === null) throw new Error('the proxy does not listen')
    return `http://127.0.0.1:${address.port}`
  }

  #join(client: net.Socket, upstream: net.Socket): void {
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        this.sockets.delete(socket)
        this.ended(other)
      })
    }
    this.carry(client, upstream)
  }

  /** Passes on what comes, as this kind does. */
  protected abstract carry(client: net.Socket, upstream: net.Socket): void

  /** One side has closed. */
  protected ended(other: net.Socket): void {
    other.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
