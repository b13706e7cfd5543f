/**
 * The end of a gateway: nobody new is let in, streams are told to come back, short requests are finished, the rest is cut.
 *
 * Nothing inside a sandbox ends with it: processes and terminals are attached to again through another gateway.
 */
import { LIMITS } from '@sandglass/contract'
import type { FastifyInstance } from 'fastify'
import type { Admission } from './auth/admission.ts'
import type { LiveSessions } from './auth/live-sessions.ts'
import { GoingAway } from './problems/going-away.ts'
import { pause, type World } from './world.ts'

const POLL_MS = 50

export class Drain {
  readonly #app: FastifyInstance
  readonly #sessions: LiveSessions
  readonly #admission: Admission
  readonly #world: World

  constructor(app: FastifyInstance, sessions: LiveSessions, admission: Admission, world: World) {
    this.#app = app
    this.#sessions = sessions
    this.#admission = admission
    this.#world = world
  }

  async run(): Promise<void> {
    this.#admission.close()
    const closed = this.#app.close()
    for (const session of this.#sessions.all()) if (session.isStream) session.close(new GoingAway())
    const deadlineMs = this.#world.nowMs() + LIMITS.gatewayDrainMs
    while (this.#sessions.size > 0 && this.#world.nowMs() < deadlineMs) await pause(this.#world, POLL_MS)
    for (const session of this.#sessions.all()) session.close(new GoingAway())
    this.#app.server.closeAllConnections()
    await closed
  }
}
