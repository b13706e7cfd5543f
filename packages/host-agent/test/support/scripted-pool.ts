/** One pool as a control plane keeps it: a target, and a version for each change. */
import { type EndOrder, type HostReport, type PoolPosition, poolKeyOf, poolSpecOf, type RuntimeSpec, type StartTicket } from '@sandglass/contract'
import type { Installation } from './installation.ts'
import { newSandbox, specOf } from './installation.ts'
import { until } from './until.ts'

type Ready = Extract<HostReport, { type: 'ready' }>

export class ScriptedPool {
  readonly installation: Installation
  readonly host: string
  readonly spec: RuntimeSpec
  readonly key: string
  version = 0
  target = 0

  private constructor(installation: Installation, host: string, spec: RuntimeSpec) {
    this.installation = installation
    this.host = host
    this.spec = spec
    this.key = poolKeyOf(poolSpecOf(spec))
  }

  static async of(installation: Installation, host: string, fields: Partial<RuntimeSpec> = {}): Promise<ScriptedPool> {
    return new ScriptedPool(installation, host, await specOf(newSandbox(), { driver: 'fake', ...fields }))
  }

  get position(): PoolPosition {
    return { key: this.key, version: this.version, target: this.target }
  }

  /** As an end order carries it. */
  get known(): NonNullable<EndOrder['pool']> {
    return { epoch: this.installation.plane.epoch, position: this.position }
  }

  order(position: PoolPosition = this.position, epoch = this.installation.plane.epoch): void {
    this.installation.plane.sendPool({ host: this.host, epoch, ...position }, poolSpecOf(this.spec))
  }

  aim(target: number): void {
    this.target = target
    this.version += 1
    this.order()
  }

  /** Takes a unit for a new sandbox; the ticket is not sent. */
  claim(fields: Partial<RuntimeSpec> = {}): { sandbox: string; ticket: StartTicket; spec: string } {
    this.target -= 1
    this.version += 1
    return this.ticket(this.position, fields)
  }

  ticket(pool: PoolPosition | null, fields: Partial<RuntimeSpec> = {}): { sandbox: string; ticket: StartTicket; spec: string } {
    const sandbox = newSandbox()
    const spec = { ...this.spec, sandbox, hostname: sandbox, ...fields }
    return { sandbox, ...this.installation.plane.ticket(spec, { generation: 1, host: this.host, pool }) }
  }

  async start(fields: Partial<RuntimeSpec> = {}): Promise<Ready> {
    const { sandbox, ticket, spec } = this.claim(fields)
    this.installation.plane.sendStart(ticket, spec)
    return this.installation.plane.untilReported('ready', sandbox)
  }

  async end(sandbox: string): Promise<Extract<HostReport, { type: 'ended' }>> {
    this.installation.plane.sendEnd({ sandbox, upto: 2, host: this.host, pool: this.known })
    return this.installation.plane.untilReported('ended', sandbox, ({ upto }) => upto === 2)
  }

  async untilAcknowledged(version = this.version): Promise<void> {
    await until(`version ${version} of the pool`, () =>
      this.installation.plane.reports.some((report) => report.type === 'pool' && report.key === this.key && report.version >= version) ? true : undefined,
    )
  }

  /** Members that answer and belong to nobody, as the agent's metrics say; of all its pools, since a test has one that is not empty. */
  async untilReady(healthUrl: string, count = this.target): Promise<void> {
    await until(`${count} members`, async () => ((await this.members(healthUrl)).ready === count ? true : undefined))
  }

  async members(healthUrl: string): Promise<{ booting: number; ready: number; ending: number }> {
    const text = await (await fetch(`${healthUrl}/metrics`)).text()
    const count = (state: string): number => Number(new RegExp(`^sandglass_host_pool_members\\{state="${state}"\\} (\\d+)$`, 'm').exec(text)?.[1])
    return { booting: count('booting'), ready: count('ready'), ending: count('ending') }
  }
}
