/** Hosts, for operators. */
import { type Host, HostSchema } from '@sandglass/contract/host'
import { HostListSchema } from '@sandglass/contract/public-api'
import { parserOf } from '@sandglass/contract/schema'
import type { Sandglass } from './client.ts'
import { type ListOptions, listPages } from './pages.ts'
import type { CallOptions } from './transport.ts'

const parser = parserOf(HostSchema)
const page = parserOf(HostListSchema)

export class Hosts {
  readonly #client: Sandglass

  constructor(client: Sandglass) {
    this.#client = client
  }

  /** @throws SandglassError `forbidden` unless the key is an operator's */
  list(options: ListOptions = {}): AsyncGenerator<Host, void, undefined> {
    return listPages(this.#client.transport, `${this.#client.url}/v1/hosts`, {}, page, options)
  }

  /** @throws SandglassError `host_not_found`, `forbidden` */
  get(id: string, options: CallOptions = {}): Promise<Host> {
    return this.#client.transport.json({ ...options, method: 'GET', url: `${this.#client.url}/v1/hosts/${encodeURIComponent(id)}`, repeatable: true }, parser)
  }
}
