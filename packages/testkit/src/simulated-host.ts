/**
 * A host agent without runtimes: it speaks the host API by TLS as a real one does, with a certificate of the tests' own CA, keeps high-water marks, and does with each order what its
 * script says. Orders and reports can be kept back and sent late, twice or out of order. Its pools keep as many members as they are ordered to.
 */
import { createPublicKey, type KeyObject, randomBytes } from 'node:crypto'
import {
  CodedError,
  type DriverProbe,
  type EndOrder,
  type HostOrder,
  HostOrderSchema,
  type HostReport,
  type HostReportsAnswer,
  HostReportsAnswerSchema,
  LIMITS,
  newHostId,
  parserOf,
  parseSpec,
  type RegisteredHost,
  RegisteredHostSchema,
  type RegisterHost,
  RenewedLeaseSchema,
  type RuntimeSpec,
  type StartTicket,
  verifySigned,
} from '@sandglass/contract'
import type { OwnIdentity } from '@sandglass/identity'
import { MachineClient } from './machine-client.ts'
import { SimulatedPools } from './simulated-pools.ts'
import { TEST_AUTHORITY } from './test-authority.ts'
import { until } from './until.ts'

export type StartScript = 'ready' | 'fail' | 'refuse' | 'hang'

export type SimulatedHostOptions = {
  /** Of the control plane's listener for machines. */
  readonly url: string
  /** Default: one of the CA that the tests of this process share. */
  readonly identity?: (hostId: string) => OwnIdentity
  readonly name?: string
  readonly capacity?: RegisterHost['capacity']
  readonly drivers?: DriverProbe[]
  readonly templates?: RegisterHost['templates']
  /** Whatever it does with a start, in order; the last one stays. Default: ready. */
  readonly starts?: readonly StartScript[]
  /** Does it prove ends that were ordered? Default: yes. */
  readonly provesEnds?: boolean
  /** Watches again when its watch breaks, and renews its lease meanwhile, as a real one does. Default: no, so that a test decides when. */
  readonly persistent?: boolean
  /** Does it acknowledge what it is told of pools? Default: yes. */
  readonly acknowledges?: boolean
}

/** `order`: the whole line, as it came. */
export type SeenStart = { readonly ticket: StartTicket; readonly spec: RuntimeSpec; readonly order: Extract<HostOrder, { type: 'start' }> }

const registered = parserOf(RegisteredHostSchema)
const renewed = parserOf(RenewedLeaseSchema)
const orders = parserOf(HostOrderSchema)
const answers = parserOf(HostReportsAnswerSchema)

const REDIAL_MS = 50
const ACKNOWLEDGE_AFTER_MS = 10

const FAKE: DriverProbe = { name: 'fake', proved: true, version: '1', detail: 'simulated', probe_ms: 0 }

export class SimulatedHost {
  readonly id: string
  readonly starts: SeenStart[] = []
  readonly ends: EndOrder[] = []
  /** Sandbox to highest generation seen, as on a host's disk. */
  readonly high = new Map<string, number>()
  /** Sandbox to generation that runs here. */
  readonly running = new Map<string, number>()
  /** What was ordered of pools, and the members. */
  readonly pools: SimulatedPools
  provesEnds: boolean
  acknowledges: boolean
  /** Does a persistent one send renewals? */
  renews = true
  bootId: string
  epoch = 0
  synced = false
  /** Problem that ended the last watch, if one did. */
  watchProblem: string | undefined
  readonly #options: SimulatedHostOptions
  #client: MachineClient
  readonly #script: StartScript[]
  readonly #toAcknowledge = new Set<string>()
  #keys = new Map<string, KeyObject>()
  #renewPeriodMs: number = LIMITS.renewPeriodMs
  #abort: AbortController | undefined
  #watching: Promise<void> | undefined

  constructor(options: SimulatedHostOptions) {
    this.#options = options
    this.id = newHostId(randomBytes)
    const identity = options.identity ?? ((name) => TEST_AUTHORITY.identity({ role: 'host', name }))
    this.#client = new MachineClient(options.url, identity(this.id))
    this.bootId = randomBytes(16).toString('hex')
    this.provesEnds = options.provesEnds ?? true
    this.acknowledges = options.acknowledges ?? true
    this.pools = new SimulatedPools(this.id)
    this.#script = [...(options.starts ?? ['ready'])]
  }

  /** What it does with starts from now on. */
  script(...starts: StartScript[]): void {
    this.#script.splice(0, this.#script.length, ...starts)
  }

  /** Shows another certificate from now on: it has joined anew. */
  become(identity: OwnIdentity): void {
    this.#client = new MachineClient(this.#options.url, identity)
  }

  /** Registers, watches, and waits until everything that was due has come. */
  async join(): Promise<void> {
    await this.register()
    await this.watch()
  }

  /** @param expectedEpoch default: the one it holds */
  async register(expectedEpoch = this.epoch): Promise<RegisteredHost> {
    const { name = 'host-1', capacity = { vcpu: 4, memory_mb: 8_192, disk_gb: 100 }, drivers = [FAKE], templates = [] } = this.#options
    const host: RegisterHost = {
      host_id: this.id,
      name,
      boot_id: this.bootId,
      expected_epoch: expectedEpoch,
      version: '0.0.0-simulated',
      capacity,
      drivers,
      templates,
      data_plane_url: 'http://127.0.0.1:1',
    }
    const answer = registered.parse(await this.#client.post('/internal/v1/hosts/register', host))
    if (answer.epoch !== this.epoch) this.pools.reset()
    this.epoch = answer.epoch
    this.#renewPeriodMs = answer.renew_period_ms
    this.#keys = new Map(answer.ticket_keys.map((key) => [key.id, createPublicKey(key.public_key_pem)]))
    return answer
  }

  /** A reboot: nothing runs any more, and it registers anew, from the epoch that it is told where that is newer than the one it held. */
  async reboot(): Promise<void> {
    await this.leave()
    this.bootId = randomBytes(16).toString('hex')
    this.running.clear()
    await this.registerAsTold()
    await this.watch()
  }

  async registerAsTold(): Promise<RegisteredHost> {
    try {
      return await this.register()
    } catch (error) {
      const told = error instanceof CodedError ? error.context.epoch : undefined
      if (told === undefined || told < this.epoch) throw error
      return await this.register(told)
    }
  }

  async renew(epoch = this.epoch, bootId = this.bootId): Promise<{ epoch: number; seq: number }> {
    return renewed.parse(await this.#client.post(`/internal/v1/hosts/${this.id}/renew`, { epoch, boot_id: bootId }))
  }

  async report(items: readonly HostReport[], epoch = this.epoch): Promise<HostReportsAnswer['results']> {
    return answers.parse(await this.#client.post(`/internal/v1/hosts/${this.id}/reports`, { epoch, items })).results
  }

  /** @param member the pool member that it became; undefined: it started cold */
  async ready(sandbox: string, generation: number, epoch = this.epoch, member?: string): Promise<HostReportsAnswer['results'][number] | undefined> {
    const evidence = { kernel: 'simulated', ...(member === undefined ? {} : { member }) }
    const path = member === undefined ? 'cold' : 'claimed'
    return (await this.report([{ type: 'ready', sandbox, generation, driver: 'fake', path, evidence, timings_ms: { total: 1 } }], epoch))[0]
  }

  async ended(
    sandbox: string,
    upto: number,
    reason: Extract<HostReport, { type: 'ended' }>['reason'] = 'ordered',
    detail: string | null = null,
  ): Promise<HostReportsAnswer['results'][number] | undefined> {
    return (await this.report([{ type: 'ended', sandbox, upto, reason, detail, pool_version: this.pools.versionFor(sandbox) }]))[0]
  }

  async watch(): Promise<void> {
    this.synced = false
    this.watchProblem = undefined
    const abort = new AbortController()
    this.#abort = abort
    this.#watching = this.#options.persistent === true ? this.#keepWatching(abort.signal) : this.#readWatch(abort.signal)
    await until(`host ${this.id} to be synced`, () => this.synced || this.watchProblem !== undefined)
    if (this.watchProblem !== undefined) throw new Error(`watch refused: ${this.watchProblem}`)
  }

  /** Closes the watch. What runs, runs on. */
  async leave(): Promise<void> {
    this.#abort?.abort()
    await this.#watching
    this.#abort = undefined
    this.#watching = undefined
  }

  async #keepWatching(signal: AbortSignal): Promise<void> {
    const renewing = setInterval(() => void (this.renews && this.renew().catch(() => undefined)), this.#renewPeriodMs)
    signal.addEventListener('abort', () => clearInterval(renewing), { once: true })
    while (!signal.aborted) {
      await this.#readWatch(signal)
      if (this.synced) this.watchProblem = undefined
      await new Promise((resolve) => setTimeout(resolve, REDIAL_MS))
    }
  }

  async #readWatch(signal: AbortSignal): Promise<void> {
    try {
      const response = await this.#client.open(`/internal/v1/hosts/${this.id}/watch?epoch=${this.epoch}`, signal)
      let rest = ''
      for await (const text of response) {
        const lines = (rest + String(text)).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) await this.#take(orders.parse(JSON.parse(line)))
      }
    } catch (error) {
      if (!signal.aborted) this.watchProblem = error instanceof CodedError ? error.code : String(error)
    }
  }

  async #take(order: HostOrder): Promise<void> {
    if (order.type === 'synced') this.synced = true
    if (order.type === 'start') {
      const ticket = verifySigned(order.ticket, this.#keys)
      if (ticket.kind !== 'start') throw new Error('a start order carried another payload')
      const spec = parseSpec(order.spec, ticket)
      this.starts.push({ ticket, spec, order })
      await this.#start(ticket)
    }
    if (order.type === 'pool') {
      const pool = verifySigned(order.order, this.#keys)
      if (pool.kind !== 'pool') throw new Error('a pool order carried another payload')
      if (this.pools.order(pool, order.spec, this.epoch)) this.#acknowledge(pool.key)
    }
    if (order.type === 'end') {
      const end = verifySigned(order.order, this.#keys)
      if (end.kind !== 'end') throw new Error('an end order carried another payload')
      this.ends.push(end)
      if (this.provesEnds) await this.#end(end)
    }
  }

  async #start(ticket: StartTicket): Promise<void> {
    // It runs already: the report of it was lost.
    if (this.running.get(ticket.sandbox) === ticket.generation) await this.ready(ticket.sandbox, ticket.generation)
    if (ticket.generation <= (this.high.get(ticket.sandbox) ?? -1)) return
    const script = (this.#script.length > 1 ? this.#script.shift() : this.#script[0]) ?? 'ready'
    if (script === 'refuse') {
      await this.report([{ type: 'refused', sandbox: ticket.sandbox, generation: ticket.generation, code: 'no_space', detail: 'the disk is full' }])
      return
    }
    this.high.set(ticket.sandbox, ticket.generation)
    if (ticket.pool !== null) this.pools.position(ticket.sandbox, ticket.pool)
    if (script === 'fail') await this.ended(ticket.sandbox, ticket.generation, 'start_failed', 'the runtime said no')
    if (script !== 'ready') return
    const key = ticket.pool?.key
    const member = key === undefined ? undefined : this.pools.pick(key)
    this.running.set(ticket.sandbox, ticket.generation)
    await this.ready(ticket.sandbox, ticket.generation, this.epoch, member)
    if (key !== undefined) this.#acknowledge(key)
  }

  /** Soon, and once for what came together: the newest version is the only one that counts. One that is lost is ordered again. */
  #acknowledge(key: string): void {
    this.pools.settle(key)
    if (!this.acknowledges || this.#toAcknowledge.has(key)) return
    this.#toAcknowledge.add(key)
    setTimeout(() => {
      this.#toAcknowledge.delete(key)
      if (!this.acknowledges) return
      this.report([{ type: 'pool', key, version: this.pools.settle(key) }]).catch(() => undefined)
    }, ACKNOWLEDGE_AFTER_MS)
  }

  async #end(order: EndOrder): Promise<void> {
    if (order.upto < (this.high.get(order.sandbox) ?? -1)) return
    this.high.set(order.sandbox, order.upto)
    if (order.pool !== null && order.pool.epoch === this.epoch) this.pools.position(order.sandbox, order.pool.position)
    this.running.delete(order.sandbox)
    await this.ended(order.sandbox, order.upto)
  }
}
