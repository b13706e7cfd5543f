/**
 * Where runtimes are, by sandbox.
 *
 * A route ends `valid_for_ms` after the question that it answers (route.sent): an answer that was long on its way is worth less. A route of
 * an older generation never replaces a newer one.
 */
import type { Route, SandboxId } from '@sandglass/contract'
import { ExpiringMap } from '../expiring-map.ts'

const MAX_ROUTES = 65_536

export class RouteTable {
  readonly #routes: ExpiringMap<Route>

  constructor(nowMs: () => number) {
    this.#routes = new ExpiringMap(nowMs, MAX_ROUTES)
  }

  get(sandboxId: SandboxId): Route | undefined {
    return this.#routes.get(sandboxId)
  }

  /** @param askedAtMs when the question was sent */
  learn(sandboxId: SandboxId, route: Route, askedAtMs: number): void {
    const known = this.#routes.get(sandboxId)
    if (known !== undefined && known.generation > route.generation) return
    const endsAtMs = askedAtMs + route.valid_for_ms
    const isOlderAnswer = known?.generation === route.generation && (this.#routes.endsAtMs(sandboxId) ?? 0) > endsAtMs
    if (!isOlderAnswer) this.#routes.set(sandboxId, route, endsAtMs)
  }

  /** Drops the route of a sandbox if it is older than `generation`. */
  forget(sandboxId: string, generation: number): void {
    const route = this.#routes.get(sandboxId)
    if (route !== undefined && route.generation < generation) this.#routes.delete(sandboxId)
  }

  /** Drops the routes to a host of epochs before `epoch`. */
  forgetHost(hostId: string, epoch: number): void {
    this.#routes.deleteWhere((route) => route.host_id === hostId && route.epoch < epoch)
  }
}
