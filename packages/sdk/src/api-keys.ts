/** API keys of a tenant. */
import { type ApiKey, type CreatedApiKey, CreatedApiKeySchema } from '@sandglass/contract/api-key'
import { ApiKeyListSchema } from '@sandglass/contract/public-api'
import type { Role } from '@sandglass/contract/role'
import { parserOf } from '@sandglass/contract/schema'
import type { Sandglass } from './client.ts'
import { type ListOptions, listPages } from './pages.ts'
import type { CallOptions } from './transport.ts'

export type CreateApiKeyOptions = CallOptions & {
  /** Letters, digits, `.`, `_`, `-` and spaces; 1 to 63. */
  readonly name: string
  /** Default `member`. */
  readonly role?: Role | undefined
  /** 60 or more; never expires when absent. */
  readonly expiresInSeconds?: number | undefined
  /** Operators only: the tenant by name, made when it does not exist. */
  readonly tenant?: string | undefined
}

const parser = parserOf(CreatedApiKeySchema)
const page = parserOf(ApiKeyListSchema)

export class ApiKeys {
  readonly #client: Sandglass

  constructor(client: Sandglass) {
    this.#client = client
  }

  /**
   * The answer holds the secret `key`, once.
   * @throws SandglassError `forbidden`, `invalid_request`
   */
  create(options: CreateApiKeyOptions): Promise<CreatedApiKey> {
    const { name, role, expiresInSeconds, tenant, ...call } = options
    return this.#client.transport.json(
      {
        ...call,
        method: 'POST',
        url: `${this.#client.url}/v1/api-keys`,
        headers: { 'idempotency-key': this.#client.transport.world.newKey() },
        json: { name, role, expires_in_seconds: expiresInSeconds, tenant },
        // A repeat of a request whose answer was lost could not show the secret again.
        repeatable: false,
      },
      parser,
    )
  }

  list(options: ListOptions = {}): AsyncGenerator<ApiKey, void, undefined> {
    return listPages(this.#client.transport, `${this.#client.url}/v1/api-keys`, {}, page, options)
  }

  /**
   * Its live sessions close within five seconds.
   * @throws SandglassError `api_key_not_found`, `forbidden`
   */
  revoke(id: string, options: CallOptions = {}): Promise<void> {
    return this.#client.transport.empty({ ...options, method: 'DELETE', url: `${this.#client.url}/v1/api-keys/${encodeURIComponent(id)}`, repeatable: true })
  }
}
