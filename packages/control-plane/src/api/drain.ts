/**
 * The end of a server: no new connections, requests under way are answered, then every connection is closed. Waiting for clients to close theirs
 * would take as long as they keep them alive.
 */
import type { FastifyInstance } from 'fastify'

const BOUND_MS = 5_000

export class Drain {
  readonly #app: FastifyInstance
  #underWay = 0
  #idle: (() => void) | undefined

  constructor(app: FastifyInstance) {
    this.#app = app
    app.addHook('onRequest', async (_request, reply) => {
      this.#underWay += 1
      reply.raw.once('close', () => this.#leave())
    })
  }

  async close(): Promise<void> {
    const closed = this.#app.close()
    if (this.#underWay > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#idle = resolve
      const timer = setTimeout(resolve, BOUND_MS)
      await promise
      clearTimeout(timer)
    }
    this.#app.server.closeAllConnections()
    await closed
  }

  #leave(): void {
    this.#underWay -= 1
    if (this.#underWay === 0) this.#idle?.()
  }
}
