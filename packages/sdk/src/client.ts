/** The client object: base URL and key. There is no other state, and none of it is global. */
import { type Capacity, CapacitySchema } from '@sandglass/contract/capacity'
import { type Quota, QuotaSchema } from '@sandglass/contract/quota'
import { parserOf } from '@sandglass/contract/schema'
import { ApiKeys } from './api-keys.ts'
import { type ChangeGap, changeEvents, type EventsOptions, type SandboxChange } from './events.ts'
import { Hosts } from './hosts.ts'
import { JoinTokens } from './join-tokens.ts'
import { Operations } from './operations.ts'
import { type Connection, findConnection, processSurroundings } from './profile.ts'
import { Templates } from './templates.ts'
import { type CallOptions, type TraceparentSource, Transport } from './transport.ts'
import { realWorld, type World } from './world.ts'

export type SandglassOptions = Partial<Connection> & {
  /** Joins every call to your own trace: returns the current W3C `traceparent`. The SDK records nothing itself. */
  readonly traceparent?: TraceparentSource
  /** Time, chance and network; for tests. */
  readonly world?: World
}

const capacityParser = parserOf(CapacitySchema)
const quotaParser = parserOf(QuotaSchema)

export class Sandglass {
  /** Base URL of the API, without a slash at its end: of several replicas the first that was named. */
  readonly url: string
  /** @internal */
  readonly transport: Transport
  readonly templates: Templates
  readonly hosts: Hosts
  readonly apiKeys: ApiKeys
  readonly joinTokens: JoinTokens
  readonly operations: Operations

  /**
   * @param options what is absent comes from SANDGLASS_URL and SANDGLASS_API_KEY, else from the installation on this machine
   * @throws SandglassError `unauthenticated` when there is no key to be found
   */
  constructor(options: SandglassOptions = {}) {
    const connection = findConnection(options, processSurroundings())
    this.url = connection.url
    this.transport = new Transport(connection, options.world ?? realWorld, options.traceparent)
    this.templates = new Templates(this)
    this.hosts = new Hosts(this)
    this.apiKeys = new ApiKeys(this)
    this.joinTokens = new JoinTokens(this)
    this.operations = new Operations(this)
  }

  /**
   * What becomes of the tenant's sandboxes, from now on or behind `since`, across lost connections, each change once.
   * @throws SandglassError `session_revoked`, `too_many_sessions`; `unavailable` or `lost_contact` when the server stays away
   */
  events(options: EventsOptions = {}): AsyncGenerator<SandboxChange | ChangeGap, void, undefined> {
    return changeEvents(this.transport, this.url, options)
  }

  /**
   * What the fleet offers and what waits for it; for operators.
   * @throws SandglassError `forbidden` unless the key is an operator's
   */
  capacity(options: CallOptions = {}): Promise<Capacity> {
    return this.transport.json({ ...options, method: 'GET', url: `${this.url}/v1/capacity`, repeatable: true }, capacityParser)
  }

  /** What the key's tenant may hold, and holds. */
  quotas(options: CallOptions = {}): Promise<Quota> {
    return this.transport.json({ ...options, method: 'GET', url: `${this.url}/v1/quotas`, repeatable: true }, quotaParser)
  }
}
