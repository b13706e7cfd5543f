/** Join tokens, for operators: with one a machine becomes a host or a gateway of the installation. */
import type { HostLabels } from '@sandglass/contract/host'
import type { MachineRole } from '@sandglass/contract/identity'
import { type CreatedJoinToken, CreatedJoinTokenSchema, type JoinToken } from '@sandglass/contract/join-token'
import { JoinTokenListSchema } from '@sandglass/contract/public-api'
import { parserOf } from '@sandglass/contract/schema'
import type { Sandglass } from './client.ts'
import { type Known, onlyKnown } from './known-options.ts'
import { type ListOptions, listPages } from './pages.ts'
import type { CallOptions } from './transport.ts'

export type CreateJoinTokenOptions = CallOptions & {
  /** Default `host`. */
  readonly role?: MachineRole | undefined
  /** 60 to 604,800, default 3,600. */
  readonly ttlSeconds?: number | undefined
  /** What the host has from its first registration on. */
  readonly labels?: HostLabels | undefined
}

const CREATE_OPTIONS: Known<CreateJoinTokenOptions> = { role: true, ttlSeconds: true, labels: true, signal: true, timeoutMs: true }
const parser = parserOf(CreatedJoinTokenSchema)
const page = parserOf(JoinTokenListSchema)

/** @throws of every method: SandglassError `forbidden` unless the key is an operator's */
export class JoinTokens {
  readonly #client: Sandglass

  constructor(client: Sandglass) {
    this.#client = client
  }

  /** The answer holds the secret `token`, once, and where to join. @throws SandglassError `invalid_request` */
  create(options: CreateJoinTokenOptions = {}): Promise<CreatedJoinToken> {
    onlyKnown('joinTokens.create', options, CREATE_OPTIONS)
    const { role, ttlSeconds, labels, ...call } = options
    const url = `${this.#client.url}/v1/join-tokens`
    // A repeat would make another one.
    return this.#client.transport.json({ ...call, method: 'POST', url, json: { role, ttl_seconds: ttlSeconds, labels }, repeatable: false }, parser)
  }

  list(options: ListOptions = {}): AsyncGenerator<JoinToken, void, undefined> {
    return listPages(this.#client.transport, `${this.#client.url}/v1/join-tokens`, {}, page, options)
  }

  /** Who has joined with it stays. @throws SandglassError `join_token_not_found` */
  revoke(id: string, options: CallOptions = {}): Promise<void> {
    return this.#client.transport.empty({ ...options, method: 'DELETE', url: `${this.#client.url}/v1/join-tokens/${encodeURIComponent(id)}`, repeatable: true })
  }
}
