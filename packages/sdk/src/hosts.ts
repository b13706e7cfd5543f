/**
 * Hosts, for operators. Named by id, or by a name that only one of them has. Every change may be repeated: what is so already stays so; a second removal finds
 * no host.
 */
import { type Host, HostSchema, type HostStatus } from '@sandglass/contract/host'
import { HostListSchema } from '@sandglass/contract/public-api'
import { parserOf } from '@sandglass/contract/schema'
import type { Sandglass } from './client.ts'
import { type Known, onlyKnown } from './known-options.ts'
import { type ListOptions, listPages } from './pages.ts'
import type { Call, CallOptions } from './transport.ts'

export type ListHostsOptions = ListOptions & {
  readonly status?: HostStatus | undefined
  /** One label, exact. */
  readonly label?: readonly [key: string, value: string] | undefined
}

export type DrainHostOptions = CallOptions & {
  /** 10 to 604,800, default 600. A drain that is under way is never given more time, it may be given less; without this it keeps its own deadline. */
  readonly deadlineSeconds?: number | undefined
}

const LIST_OPTIONS: Known<ListHostsOptions> = { status: true, label: true, pageSize: true, signal: true, timeoutMs: true }
const DRAIN_OPTIONS: Known<DrainHostOptions> = { deadlineSeconds: true, signal: true, timeoutMs: true }

const parser = parserOf(HostSchema)
const page = parserOf(HostListSchema)

/** @throws of every method: SandglassError `forbidden` unless the key is an operator's; of those that name a host: `host_not_found`, `host_ambiguous` */
export class Hosts {
  readonly #client: Sandglass

  constructor(client: Sandglass) {
    this.#client = client
  }

  list(options: ListHostsOptions = {}): AsyncGenerator<Host, void, undefined> {
    onlyKnown('hosts.list', options, LIST_OPTIONS)
    const { status, label, ...rest } = options
    return listPages(this.#client.transport, `${this.#client.url}/v1/hosts`, { status, label: label?.join('=') }, page, rest)
  }

  get(idOrName: string, options: CallOptions = {}): Promise<Host> {
    return this.#host(idOrName, '', { ...options, method: 'GET' })
  }

  /**
   * Sets labels, and takes away those that are null; others stay.
   * @throws SandglassError `invalid_request`, `limit_exceeded`
   */
  label(idOrName: string, labels: Readonly<Record<string, string | null>>, options: CallOptions = {}): Promise<Host> {
    return this.#host(idOrName, '', { ...options, method: 'PATCH', json: { labels } })
  }

  /** From its answer on nothing is placed or claimed there; what runs goes on. */
  cordon(idOrName: string, options: CallOptions = {}): Promise<Host> {
    return this.#host(idOrName, '/cordon', { ...options, method: 'POST' })
  }

  /** Also calls off a drain; what that has ended stays ended. */
  uncordon(idOrName: string, options: CallOptions = {}): Promise<Host> {
    return this.#host(idOrName, '/uncordon', { ...options, method: 'POST' })
  }

  /** Returns when it has begun; `drain` of the host tells how far it is and what it waits for. */
  drain(idOrName: string, options: DrainHostOptions = {}): Promise<Host> {
    onlyKnown('hosts.drain', options, DRAIN_OPTIONS)
    const { deadlineSeconds, ...call } = options
    return this.#host(idOrName, '/drain', { ...call, method: 'POST', json: { deadline_seconds: deadlineSeconds } })
  }

  /** @throws SandglassError `host_in_use` while anything is assigned to it */
  remove(idOrName: string, options: CallOptions = {}): Promise<void> {
    // A repeat of one whose answer was lost would be told that there is no such host.
    return this.#client.transport.empty({ ...options, method: 'DELETE', url: this.#urlOf(idOrName), repeatable: false })
  }

  #host(idOrName: string, path: string, call: Omit<Call, 'url' | 'repeatable'>): Promise<Host> {
    return this.#client.transport.json({ ...call, url: `${this.#urlOf(idOrName)}${path}`, repeatable: true }, parser)
  }

  #urlOf(idOrName: string): string {
    return `${this.#client.url}/v1/hosts/${encodeURIComponent(idOrName)}`
  }
}
