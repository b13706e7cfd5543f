/** Makes the faults of a mix happen, each at its moments, and undoes all of them when the run is to come to rest. */
import type { CrashPoint as AgentPoint } from '@sandglass/host-agent/faults/crash-point'
import { runAgent } from '../host/agent.ts'
import type { Machine } from '../host/machine.ts'
import { Random } from '../kernel/random.ts'
import type { World } from '../kernel/world.ts'
import type { Replica } from '../replica/replica.ts'
import { HAPPENINGS, type Installation } from './happenings.ts'
import { KINDS, type Kind, type Mix } from './mix.ts'

export class Chaos {
  readonly #mix: Mix
  readonly #random: Random
  #installation: Installation | undefined
  #on = false

  constructor(seed: number, mix: Mix) {
    this.#mix = mix
    this.#random = new Random(seed, 4)
  }

  begin(installation: Installation): void {
    this.#installation = installation
    this.#on = true
    const { postgres, network, machines } = installation
    Object.assign(network.faults, this.#mix.network)
    Object.assign(postgres.faults, this.#mix.store)
    for (const machine of machines) {
      machine.failingLaunches = this.#mix.launches.failing
      machine.silentGuests = this.#mix.launches.silent
    }
    for (const kind of KINDS) this.#plan(installation, kind)
  }

  end(): void {
    const installation = this.#installation
    this.#on = false
    if (installation === undefined) return
    const { world, postgres, network, machines, replicas } = installation
    world.note('world', 'nothing disturbs any more')
    Object.assign(network.faults, { lost: 0, answerLost: 0, doubled: 0, slow: 0, slowMs: 0 })
    Object.assign(postgres.faults, { lostBefore: 0, lostAfter: 0, slowMs: 0.5 })
    postgres.comeUp()
    network.healAll()
    for (const replica of replicas) {
      replica.resume()
      replica.start()
    }
    for (const machine of machines) {
      machine.slowness = 1
      machine.disk.full = false
      machine.failingLaunches = 0
      machine.silentGuests = 0
      machine.resumeAgent()
      machine.comeUp()
      this.restartAgent(machine)
    }
  }

  get notifications(): Mix['notifications'] {
    return this.#on ? this.#mix.notifications : { lost: 0, doubled: 0, lateMs: 2 }
  }

  /** A named point of the host agent's code. */
  readonly reachAgent = (machine: Machine, point: AgentPoint): void => {
    if (!this.#on || !this.#random.chance(this.#mix.points.agentDies)) return
    machine.world.note(machine.name, `reaches ${point}`)
    this.#crashAgent(machine)
  }

  /** A named point of the control plane's code. */
  readonly reachReplica = (replica: Replica, point: string): Promise<void> | void => {
    const world = this.#installation?.world
    if (!this.#on || world === undefined) return
    if (this.#random.chance(this.#mix.points.replicaDies)) {
      world.note(replica.name, `reaches ${point}`)
      this.#crashReplica(world, replica)
      return new Promise(() => undefined)
    }
    if (!this.#random.chance(this.#mix.points.replicaStalls)) return
    const ms = this.#random.between(10, 4_000)
    world.note(replica.name, `stalls at ${point} for ${Math.round(ms)} ms`)
    return new Promise((resolve) => setTimeout(resolve, ms))
  }

  restartAgent(machine: Machine): void {
    runAgent(machine, this.reachAgent)
  }

  #plan(installation: Installation, kind: Kind): void {
    const mean = this.#mix.everyMs[kind]
    if (mean === 0) return
    const ms = -Math.log(1 - this.#random.next()) * mean
    installation.world.at(ms, undefined, kind, () => {
      if (!this.#on) return
      const { world, replicas, machines } = installation
      HAPPENINGS[kind]({
        installation,
        random: this.#random,
        lastsMs: this.#mix.lastsMs,
        machine: this.#random.pick(machines),
        replica: this.#random.pick(replicas),
        later: (from, to, undo) => void world.at(this.#random.between(from, to), undefined, `the end of ${kind}`, undo),
        crashAgent: (machine) => this.#crashAgent(machine),
        crashReplica: (replica) => this.#crashReplica(world, replica),
        restartAgent: (machine) => this.restartAgent(machine),
      })
      this.#plan(installation, kind)
    })
  }

  #crashAgent(machine: Machine): void {
    machine.killAgent()
    machine.world.at(this.#random.between(200, 6_000), undefined, 'a supervisor', () => this.restartAgent(machine))
  }

  #crashReplica(world: World, replica: Replica): void {
    replica.kill()
    world.at(this.#random.between(200, 8_000), undefined, 'a supervisor', () => replica.start())
  }
}
