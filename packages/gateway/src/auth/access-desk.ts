/**
 * Who may reach which sandbox: asks the control plane and remembers the answer for a short time.
 *
 * An answer is remembered at most LIMITS.accessCacheMs, counted from the question, and only when it lets somebody in: a sandbox that is not
 * ready yet may be ready a moment later. An invalidation that arrives while a question is open makes its answer worthless, so it is asked again.
 */
import { type Access, CodedError, LIMITS, type Role, type Route, requireRole, type SandboxId } from '@sandglass/contract'
import { ExpiringMap } from '../expiring-map.ts'
import { routeOfAccess } from '../routes/route-of-access.ts'
import type { RouteTable } from '../routes/route-table.ts'
import type { World } from '../world.ts'
import type { ControlClient } from './control-client.ts'

const MAX_ANSWERS = 16_384
const MAX_INVALIDATIONS = 65_536
/** Longer than a question can be open and its answer be remembered. */
const INVALIDATION_MEMORY_MS = 15_000
const ATTEMPTS = 3

/** What a client was allowed at the time of the question. */
export type Grant = {
  readonly sandboxId: SandboxId
  readonly keySha256: string
  readonly apiKeyId: string
  readonly role: Role
  readonly route: Route
  /** Of the question, on the monotonic clock. */
  readonly askedAtMs: number
}

type Answer = {
  readonly access: Access
  readonly askedAtMs: number
  /** Invalidations that had come when the question was sent. */
  readonly sequence: number
}

export class AccessDesk {
  readonly #client: ControlClient
  readonly #routes: RouteTable
  readonly #world: World
  readonly #answers: ExpiringMap<Answer>
  readonly #invalidated: ExpiringMap<number>
  readonly #open = new Map<string, Promise<Answer>>()
  #sequence = 0
  #clearedAt = 0

  constructor(client: ControlClient, routes: RouteTable, world: World) {
    this.#client = client
    this.#routes = routes
    this.#world = world
    this.#answers = new ExpiringMap(world.nowMs, MAX_ANSWERS)
    this.#invalidated = new ExpiringMap(world.nowMs, MAX_INVALIDATIONS)
  }

  /** @throws CodedError `unauthenticated`, `forbidden`, `sandbox_not_found`, or why the sandbox cannot be reached */
  async grant(keySha256: string, sandboxId: SandboxId, needed: Role): Promise<Grant> {
    const cached = this.#answers.get(`${keySha256}:${sandboxId}`)
    const isUsable = cached !== undefined && cached.sequence >= this.#clearedAt && this.#isCurrent(cached, sandboxId)
    return this.#grantOf(isUsable ? cached : await this.#shared(keySha256, sandboxId), keySha256, sandboxId, needed)
  }

  /** Asks whatever is remembered. @throws CodedError as `grant` */
  async freshGrant(keySha256: string, sandboxId: SandboxId, needed: Role): Promise<Grant> {
    this.#answers.delete(`${keySha256}:${sandboxId}`)
    return this.#grantOf(await this.#ask(keySha256, sandboxId), keySha256, sandboxId, needed)
  }

  keyRevoked(apiKeyId: string): void {
    this.#invalidate(apiKeyId)
  }

  sandboxChanged(sandboxId: string, generation: number): void {
    this.#invalidate(sandboxId)
    this.#routes.forget(sandboxId, generation)
  }

  /** @param epoch routes to it of an earlier one lead nowhere */
  hostFenced(hostId: string, epoch: number): void {
    this.#invalidate(hostId)
    this.#routes.forgetHost(hostId, epoch)
  }

  /** Everything remembered may be wrong. */
  clear(): void {
    this.#sequence += 1
    this.#clearedAt = this.#sequence
    this.#open.clear()
  }

  #invalidate(id: string): void {
    this.#sequence += 1
    this.#invalidated.set(id, this.#sequence, this.#world.nowMs() + INVALIDATION_MEMORY_MS)
    this.#open.clear()
  }

  /** Nothing that this answer is about has changed since its question. */
  #isCurrent({ access, sequence }: Answer, sandboxId: SandboxId): boolean {
    const { api_key_id: keyId, route } = access
    const isBehind = (id: string): boolean => (this.#invalidated.get(id) ?? 0) <= sequence
    return isBehind(sandboxId) && isBehind(keyId) && (route === null || isBehind(route.host_id))
  }

  #grantOf({ access, askedAtMs }: Answer, keySha256: string, sandboxId: SandboxId, needed: Role): Grant {
    requireRole(access.role, needed)
    const route = routeOfAccess(access)
    return { sandboxId, keySha256, apiKeyId: access.api_key_id, role: access.role, route, askedAtMs }
  }

  /** Many requests at once are one question. */
  async #shared(keySha256: string, sandboxId: SandboxId): Promise<Answer> {
    const key = `${keySha256}:${sandboxId}`
    const open = this.#open.get(key)
    if (open !== undefined) return open
    const asked = this.#ask(keySha256, sandboxId)
    this.#open.set(key, asked)
    try {
      return await asked
    } finally {
      if (this.#open.get(key) === asked) this.#open.delete(key)
    }
  }

  async #ask(keySha256: string, sandboxId: SandboxId): Promise<Answer> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const sequence = this.#sequence
      const askedAtMs = this.#world.nowMs()
      this.#world.metrics.count('sandglass_gateway_access_questions_total')
      const access = await this.#client.access({ key_sha256: keySha256, sandbox_id: sandboxId })
      const answer = { access, askedAtMs, sequence }
      if (!this.#isCurrent(answer, sandboxId)) continue
      if (access.status === 'ready' && access.route !== null) {
        this.#routes.learn(sandboxId, access.route, askedAtMs)
        const lifeMs = Math.min(LIMITS.accessCacheMs, access.route.valid_for_ms)
        this.#answers.set(`${keySha256}:${sandboxId}`, answer, askedAtMs + lifeMs)
      }
      return answer
    }
    throw new CodedError('unavailable', 'The sandbox is changing; try again in a moment.')
  }
}
