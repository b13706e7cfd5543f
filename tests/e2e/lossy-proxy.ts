/** Forwards requests and can lose their answers: what is committed stays committed, and the client never hears of it. */
import type net from 'node:net'
import { TcpProxy } from './tcp-proxy.ts'

export class LossyProxy extends TcpProxy {
  #toLose = 0

  static start(target: string): Promise<LossyProxy> {
    return new LossyProxy(new URL(target)).listen()
  }

  /** The next answers are lost: the connection breaks where the answer should come. */
  lose(count: number): void {
    this.#toLose = count
  }

  protected carry(client: net.Socket, upstream: net.Socket): void {
    client.on('data', (chunk) => upstream.write(chunk))
    upstream.on('data', (chunk) => {
      if (this.#toLose === 0) return void client.write(chunk)
      this.#toLose -= 1
      client.destroy()
    })
  }
}
