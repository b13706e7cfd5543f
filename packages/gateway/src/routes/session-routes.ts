/** The route of one live session: from the table while it is valid, else from a new question. */
import { CodedError, type Route } from '@sandglass/contract'
import type { AccessDesk } from '../auth/access-desk.ts'
import type { LiveSession } from '../auth/live-sessions.ts'
import type { RouteSource } from '../hosts/guest-client.ts'
import type { RouteTable } from './route-table.ts'

export class SessionRoutes implements RouteSource {
  readonly #session: LiveSession
  readonly #desk: AccessDesk
  readonly #table: RouteTable

  constructor(session: LiveSession, desk: AccessDesk, table: RouteTable) {
    this.#session = session
    this.#desk = desk
    this.#table = table
  }

  async current(): Promise<Route> {
    const known = this.#table.get(this.#session.grant.sandboxId)
    if (known !== undefined && known.generation === this.#session.generation) return known
    return this.#ask()
  }

  async renewed(stale: Route): Promise<Route> {
    const route = await this.#ask()
    if (route.generation === stale.generation && route.data_plane_url === stale.data_plane_url && route.epoch === stale.epoch) {
      throw new CodedError('unavailable', 'The sandbox is changing; try again in a moment.')
    }
    return route
  }

  async #ask(): Promise<Route> {
    const { keySha256, sandboxId } = this.#session.grant
    const { route, askedAtMs } = await this.#desk.freshGrant(keySha256, sandboxId, this.#session.needed)
    this.#session.renew(route, askedAtMs)
    return route
  }
}
