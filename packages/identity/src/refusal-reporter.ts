/**
 * Peers that a host or a gateway has refused, told to the control plane, whose audit log they belong in. What is alike is counted; what is more than there is
 * room for is only counted too. A control plane that does not answer is told later, and a process that ends first has told less: nothing hangs on it.
 */
import { LIMITS, type PeerRefusal } from '@sandglass/contract'
import { askInTurn } from './ask-in-turn.ts'
import { controlPlaneAgent, secureUrl } from './identity-agent.ts'
import { jsonPost } from './json-post.ts'
import type { OwnIdentity } from './own-identity.ts'
import type { PeerRefused } from './peer.ts'

const KINDS_MAX = 64
const FIRST_MS = 200
const RETRY_MS = 10_000

export class RefusalReporter {
  readonly #tell: (items: PeerRefusal[]) => Promise<unknown>
  readonly #waiting = new Map<string, PeerRefusal>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(controlUrls: readonly [string, ...string[]], identity: OwnIdentity) {
    const urls = controlUrls.map((url) => new URL('/internal/v1/refusals', secureUrl(url, 'The control plane')))
    const agent = controlPlaneAgent(identity, { keepAlive: false })
    this.#tell = (items) => askInTurn(urls, (url) => jsonPost(url, { items }, agent(), AbortSignal.timeout(LIMITS.hostControlRequestMs)))
  }

  note({ reason, claimed }: PeerRefused, address: string | undefined): void {
    this.#add({ reason, claimed, address: (address ?? '').slice(0, 64), count: 1 })
    this.#schedule(FIRST_MS)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #add(item: PeerRefusal): void {
    const key = `${item.reason} ${item.claimed} ${item.address}`
    const room = this.#waiting.has(key) || this.#waiting.size < KINDS_MAX
    const into = room ? key : ([...this.#waiting.keys()].at(-1) ?? key)
    const known = this.#waiting.get(into)
    this.#waiting.set(into, { ...(known ?? item), count: (known?.count ?? 0) + item.count })
  }

  #schedule(ms: number): void {
    if (this.#isClosed || this.#waiting.size === 0) return
    this.#timer ??= setTimeout(() => void this.#send(), ms).unref()
  }

  async #send(): Promise<void> {
    const items = [...this.#waiting.values()]
    this.#waiting.clear()
    try {
      await this.#tell(items)
      this.#timer = undefined
      this.#schedule(FIRST_MS)
    } catch {
      for (const item of items) this.#add(item)
      this.#timer = undefined
      this.#schedule(RETRY_MS)
    }
  }
}
