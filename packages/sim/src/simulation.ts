/**
 * One seed from its beginning to its end: an installation comes up, is disturbed while clients use it, is left alone and has to come to rest, is emptied,
 * and has to be as quick as one that was never disturbed.
 */
import { parserOf } from '@sandglass/contract'
import Type from 'typebox'
import { Client, sandboxOf } from './client/client.ts'
import { Ledger, live, MEMORY_MB, operate, uncordon } from './client/workload.ts'
import { Chaos } from './faults/chaos.ts'
import { type Focus, mixOf } from './faults/mix.ts'
import { Machine, TEMPLATE } from './host/machine.ts'
import { hostRecordOf } from './invariants/machine-invariants.ts'
import { restless } from './invariants/rest.ts'
import { Watch } from './invariants/watch.ts'
import { World } from './kernel/world.ts'
import { latestMs, Network } from './network/network.ts'
import { KEYS, replicaConfig, SWEEP_MS } from './replica/config.ts'
import { Replica } from './replica/replica.ts'
import type { Engine } from './store/engine.ts'
import { SimulatedPostgres } from './store/simulated-postgres.ts'

export type SeedResult = {
  readonly seed: number
  /** What was violated; undefined: nothing. */
  readonly violation: string | undefined
  /** The last lines of what happened. */
  readonly history: readonly string[]
  readonly lines: number
  /** Of all that happened. */
  readonly digest: string
  /** Of the world's time, milliseconds. */
  readonly simulatedMs: number
}

export type SeedOptions = { readonly engine: Engine; readonly focus?: Focus; readonly replaced?: (text: string) => string; readonly historyLines?: number }

const reconcilers = parserOf(
  Type.Object({ items: Type.Array(Type.Object({ name: Type.String(), last_run_at: Type.Union([Type.String(), Type.Null()]), period_ms: Type.Number() })) }),
)

const COME_UP_MS = 30_000
const CLIENTS_MS = 300_000
const REST_MS = 180_000
/** Without a fault a start waits for no sweep. */
const CALM_START_MS = 1_800

export async function runSeed(seed: number, { engine, focus, replaced, historyLines = 60 }: SeedOptions): Promise<SeedResult> {
  const run = new Run(seed, engine, focus, replaced)
  await run.whole()
  const { world } = run
  return {
    seed,
    violation: world.violation?.message,
    history: world.history.last(historyLines),
    lines: world.history.length,
    digest: world.history.digest(),
    simulatedMs: world.nowMs,
  }
}

class Run {
  readonly world: World
  readonly #mix
  readonly #chaos: Chaos
  readonly #postgres: SimulatedPostgres
  readonly #network: Network
  readonly #replicas: readonly Replica[]
  readonly #machines: readonly Machine[]
  readonly #watch: Watch
  readonly #ledger = new Ledger()
  readonly #owner: Client
  readonly #operator: Client
  #working = 0

  constructor(seed: number, engine: Engine, focus: Focus | undefined, replaced: SeedOptions['replaced']) {
    const world = new World(seed)
    this.world = world
    const mix = mixOf(seed, focus)
    this.#mix = mix
    this.#chaos = new Chaos(seed, mix)
    engine.empty()
    const postgres = new SimulatedPostgres(world, engine, replaced)
    this.#postgres = postgres
    this.#furnish(mix.quota)
    const config = replicaConfig(mix)
    this.#replicas = Array.from(
      { length: mix.replicas },
      (_, index) => new Replica(world, `cp-${index + 1}`, { postgres, config, reach: this.#chaos.reachReplica }),
    )
    this.#network = new Network(world, this.#replicas)
    this.#machines = Array.from({ length: mix.hosts }, (_, index) => {
      const room = mix.room[index] ?? 3
      return new Machine(world, `host-${index + 1}`, this.#network, { vcpu: 4, memory_mb: room * MEMORY_MB, disk_gb: 100 })
    })
    this.#watch = new Watch(world, postgres, this.#machines)
    postgres.onCommit((commit) => {
      this.#notify(commit.notifications)
      this.#watch.committed(commit)
      const broken = commit.texts.length > 0 ? this.#ledger.broken(this.#watch.snapshot) : undefined
      if (broken !== undefined) world.violate(broken)
    })
    this.#owner = new Client(world, 'client', this.#network, KEYS.owner)
    this.#operator = new Client(world, 'operator', this.#network, KEYS.operator)
  }

  async whole(): Promise<void> {
    const { world } = this
    for (const replica of this.#replicas) replica.start()
    for (const machine of this.#machines) this.#chaos.restartAgent(machine)
    const up = await world.runUntil(COME_UP_MS, () => this.#machines.every((machine) => this.#isRegistered(machine)))
    if (!up) return world.violate('the installation did not come up')
    world.note('world', `${this.#replicas.length} control planes, ${this.#machines.length} hosts; clients begin`)
    this.#chaos.begin({ world, postgres: this.#postgres, network: this.#network, replicas: this.#replicas, machines: this.#machines })
    const endMs = world.nowMs + this.#mix.durationMs
    for (let index = 0; index < this.#mix.sandboxes; index += 1)
      this.#work(this.#owner, () => live(this.#owner, `intent-${index + 1}`, this.#mix, this.#ledger))
    this.#work(this.#operator, () => operate(this.#operator, this.#machines, this.#mix, endMs))
    await world.runUntil(endMs)
    if (world.violation !== undefined) return
    this.#chaos.end()
    if (!(await world.runUntil(world.nowMs + CLIENTS_MS, () => this.#working === 0))) return world.violate('a client waits for ever')
    await world.runUntil(world.nowMs + latestMs(this.#mix.network))
    this.#work(this.#operator, () => uncordon(this.#operator, this.#machines))
    await world.runUntil(world.nowMs + CLIENTS_MS, () => this.#working === 0)
    if (world.violation !== undefined) return
    await this.#rest('it was left alone')
    for (const phase of [() => this.#everyReconcilerLooks(), () => this.#emptied(), () => this.#calm()]) {
      if (world.violation === undefined) await phase()
    }
  }

  #furnish(quota: number): void {
    const { digest, name } = TEMPLATE
    const tenant = 'teaaaaaaaaaaaaaaaa'
    for (const text of [
      `INSERT INTO sandglass.tenants (id, name) VALUES ('${tenant}', 'default')`,
      `INSERT INTO sandglass.quotas (tenant_id, running_sandboxes_limit, vcpu_milli_limit, memory_mb_limit, disk_gb_limit, kept_sandboxes_limit)
       VALUES ('${tenant}', ${quota}, 1000000, 1000000, 1000000, 100)`,
      `INSERT INTO sandglass.templates (name, current_digest) VALUES ('${name}', '${digest}')`,
      `INSERT INTO sandglass.template_versions (id, name, digest, size_bytes, packages, created_at)
       VALUES ('tvaaaaaaaaaaaaaaaa', '${name}', '${digest}', 1, '[]', clock_timestamp())`,
    ]) {
      const { error } = this.#postgres.look({ text })
      if (error !== undefined) throw error
    }
  }

  #isRegistered(machine: Machine): boolean {
    const hostId = hostRecordOf(machine)?.host_id
    return this.#watch.snapshot.hosts.some(({ id, epoch, memory_mb_capacity }) => id === hostId && epoch > 0 && memory_mb_capacity > 0)
  }

  /** Wake-ups are hints: they are lost, come late and come twice. */
  #notify(payloads: readonly string[]): void {
    const { world } = this
    for (const payload of payloads.toSorted()) {
      for (const replica of this.#replicas) {
        const { lost, doubled, lateMs } = this.#chaos.notifications
        if (world.random.chance(lost)) continue
        replica.hear(payload, world.random.between(0.2, lateMs))
        if (world.random.chance(doubled)) replica.hear(payload, world.random.between(0.2, 10 * lateMs))
      }
    }
  }

  #work(client: Client, work: () => Promise<unknown>): void {
    this.#working += 1
    client.actor.run(() => {
      work()
        .catch((error: unknown) => this.world.violate(`a client failed: ${error instanceof Error ? error.stack : String(error)}`))
        .finally(() => {
          this.#working -= 1
        })
    })
  }

  async #rest(since: string): Promise<void> {
    const { world } = this
    const began = world.nowMs
    let looked = 0
    let reason: string | undefined = 'nobody looked'
    const rested = await world.runUntil(began + REST_MS, () => {
      if (world.nowMs - looked < 100) return false
      looked = world.nowMs
      reason = restless(this.#watch.snapshot, this.#machines)
      return reason === undefined
    })
    if (world.violation === undefined && !rested) world.violate(`${REST_MS / 1_000} s after ${since} it is not at rest: ${reason}`)
    else world.note('world', `is at rest ${((world.nowMs - began) / 1_000).toFixed(1)} s after ${since}`)
  }

  async #everyReconcilerLooks(): Promise<void> {
    const { world } = this
    await world.runUntil(world.nowMs + 2 * SWEEP_MS)
    // When they looked is told by wall clocks, which somebody may have set.
    if (this.#mix.everyMs.wallStep > 0) return
    this.#work(this.#operator, async () => {
      for (const replica of this.#replicas) {
        const answer = await this.#operator.ask({ method: 'GET', url: '/internal/v1/reconcilers' }, { at: replica })
        const nowMs = replica.clock.wallMs(world.nowMs)
        for (const { name, last_run_at: at, period_ms: period } of reconcilers.parse(answer?.body).items) {
          if (at === null || nowMs - Date.parse(at) > 2 * period + SWEEP_MS) world.violate(`reconciler ${name} of ${replica.name} has not looked since ${at}`)
        }
      }
    })
    await world.runUntil(world.nowMs + COME_UP_MS, () => this.#working === 0)
  }

  async #emptied(): Promise<void> {
    const { world } = this
    this.#work(this.#owner, async () => {
      for (const { id, desired } of this.#watch.snapshot.sandboxes) {
        if (desired === 'deleted') continue
        await this.#owner.ask({ method: 'DELETE', url: `/v1/sandboxes/${id}` })
        this.#ledger.deleted.add(id)
      }
    })
    await world.runUntil(world.nowMs + COME_UP_MS, () => this.#working === 0)
    await this.#rest('everything was deleted')
  }

  /** A start and a delete through each control plane, wherever the hosts' watches are. */
  async #calm(): Promise<void> {
    const { world } = this
    for (const replica of this.#replicas) {
      this.#work(this.#owner, async () => {
        const began = world.nowMs
        const body = { isolation: 'fake', resources: { vcpu: 0.5, memory_mb: MEMORY_MB, disk_gb: 1 } }
        const made = await this.#owner.ask({ method: 'POST', url: '/v1/sandboxes' }, { key: this.#owner.newKey(), body, waitSeconds: 20, at: replica })
        if (made?.status !== 201) return world.violate(`in the calm a create was answered ${made?.status}: ${JSON.stringify(made?.body)}`)
        const tookMs = world.nowMs - began
        if (tookMs > CALM_START_MS) world.violate(`in the calm a create took ${Math.round(tookMs)} ms`)
        const removed = world.nowMs
        const ended = await this.#owner.ask({ method: 'DELETE', url: `/v1/sandboxes/${sandboxOf(made).id}` }, { waitSeconds: 20, at: replica })
        if (ended?.status !== 204) return world.violate(`in the calm a delete was answered ${ended?.status}`)
        if (world.nowMs - removed > CALM_START_MS) world.violate(`in the calm a delete took ${Math.round(world.nowMs - removed)} ms`)
      })
      await world.runUntil(world.nowMs + 60_000, () => this.#working === 0)
    }
    if (world.violation === undefined) await this.#rest('the calm')
  }
}
