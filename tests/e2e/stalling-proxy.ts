/** Can stop carrying anything without closing anything: a partition, as a client behind a dead network is for a server. */
import type net from 'node:net'
import { TcpProxy } from './tcp-proxy.ts'

export class StallingProxy extends TcpProxy {
  #stalled = false

  static start(target: string): Promise<StallingProxy> {
    return new StallingProxy(new URL(target)).listen()
  }

  /** From now on nothing passes, and no end either. */
  stall(): void {
    this.#stalled = true
    for (const socket of this.sockets) socket.pause()
  }

  protected carry(client: net.Socket, upstream: net.Socket): void {
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      socket.on('data', (chunk) => {
        if (!other.write(chunk)) socket.pause()
      })
      other.on('drain', () => {
        if (!this.#stalled) socket.resume()
      })
    }
  }

  protected override ended(other: net.Socket): void {
    if (!this.#stalled) other.destroy()
  }
}
