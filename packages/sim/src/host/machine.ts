/**
 * A simulated machine: what is on it outlives its host agent. A process of it acts on the machine in steps; between any two of them the agent may die, be
 * paused, or lose its machine.
 */

import { Actor, presentActor } from '../kernel/actor.ts'
import { Clockwork } from '../kernel/clockwork.ts'
import type { World } from '../kernel/world.ts'
import type { Network } from '../network/network.ts'
import { Disk } from './disk.ts'
import { identityOf } from './identity.ts'
import type { Runtime } from './runtime.ts'
import { SimulatedWarden } from './warden.ts'

export const TEMPLATE = { name: 'base', digest: `sha256:${'a'.repeat(64)}` }

export type Channel = { readonly actor: Actor; hear(runtime: Runtime): void; lose(): void }

const machines = new WeakMap<Actor, Machine>()

export class Machine {
  readonly name: string
  readonly world: World
  readonly network: Network
  readonly clock: Clockwork
  readonly disk: Disk
  readonly warden: SimulatedWarden
  readonly runtimes = new Map<string, Runtime>()
  readonly directories = new Set<string>()
  readonly capacity: { readonly vcpu: number; readonly memory_mb: number; readonly disk_gb: number }
  /** How much longer steps take. */
  slowness = 1
  /** Of launches, in [0, 1]. */
  failingLaunches = 0
  silentGuests = 0
  readonly #channels = new Map<string, Channel>()
  #bootId = ''
  #isUp = true
  #agent: Actor | undefined
  #onIdentity: (machine: Machine, runtime: Runtime) => void = () => undefined

  constructor(world: World, name: string, network: Network, capacity: Machine['capacity']) {
    this.world = world
    this.name = name
    this.network = network
    this.capacity = capacity
    this.clock = new Clockwork(1 + world.random.between(-0.001, 0.001), 0)
    this.disk = new Disk(this)
    this.warden = new SimulatedWarden(world, {
      runtimes: { freeze: () => this.#setFrozen(true), thaw: () => this.#setFrozen(false) },
      onMachine: (worldMs) => this.clock.monotonicMs(worldMs),
      worldMs: (localMs) => this.clock.worldMs(localMs),
    })
    this.#bootId = this.#newBootId()
  }

  get bootId(): string {
    return this.#bootId
  }

  get isUp(): boolean {
    return this.#isUp
  }

  get agent(): Actor | undefined {
    return this.#agent?.alive === true ? this.#agent : undefined
  }

  onIdentity(listener: (machine: Machine, runtime: Runtime) => void): void {
    this.#onIdentity = listener
  }

  /** A process of this machine. */
  newAgent(): Actor {
    const actor = new Actor(this.world, this.name, this.clock)
    machines.set(actor, this)
    this.#agent = actor
    return actor
  }

  /** The present process acts on the machine, and hears what came of it. */
  step<T>(what: string, act: () => T): Promise<T> {
    const actor = presentActor()
    const { world } = this
    const boot = this.#bootId
    if (!actor.alive) return new Promise(() => undefined)
    return new Promise((resolve, reject) => {
      world.at(world.random.between(0.1, 3) * this.slowness, undefined, what, () => {
        // What a dead process had asked of its kernel is done or was not begun.
        if (!this.#isUp || this.#bootId !== boot || (!actor.alive && world.random.chance(0.5))) return
        let answer: () => void
        try {
          const value = act()
          answer = () => resolve(value)
        } catch (error) {
          answer = () => reject(error)
        }
        world.at(world.random.between(0, 1), actor, what, answer)
      })
    })
  }

  killAgent(): void {
    if (this.#agent?.alive !== true) return
    this.world.note(this.name, 'its agent is killed')
    this.#agent.die()
    this.#channels.clear()
  }

  pauseAgent(): void {
    if (this.#agent?.alive !== true || this.#agent.paused) return
    this.world.note(this.name, 'its agent is paused')
    this.#agent.pause()
  }

  resumeAgent(): void {
    if (this.#agent?.paused !== true) return
    this.world.note(this.name, 'its agent goes on')
    this.#agent.resume()
  }

  /** Power is gone: only the disk stays. */
  goDown(): void {
    if (!this.#isUp) return
    this.world.note(this.name, 'loses its power')
    this.#isUp = false
    this.#agent?.die()
    this.#channels.clear()
    this.runtimes.clear()
  }

  comeUp(): void {
    if (this.#isUp) return
    this.world.note(this.name, 'boots')
    this.#isUp = true
    this.#bootId = this.#newBootId()
    this.clock.reboot(this.world.nowMs)
    this.warden.reset()
  }

  /** @param over the launcher came to its end, with the runtime up or without it */
  launch(name: string, memoryMb: number, over: () => void): void {
    const actor = presentActor()
    if (!actor.alive) return
    if (!this.warden.isOpen) throw new Error('the gate of the warden is closed')
    const { random } = this.world
    const runtime: Runtime = {
      name,
      guestBootId: random.bytes(16).toString('hex'),
      memoryMb,
      state: 'launching',
      frozen: false,
      identity: null,
      silent: random.chance(this.silentGuests),
    }
    this.runtimes.set(name, runtime)
    this.world.at(random.between(20, 400) * this.slowness, undefined, 'a runtime comes up', () => {
      this.world.at(0, actor, 'a launcher is over', over)
      if (this.runtimes.get(name) !== runtime) return
      runtime.state = 'running'
      runtime.frozen = this.warden.frozen
      this.world.note(this.name, `${name} runs`)
      this.#dial(name)
    })
  }

  /** A runtime is gone, by whomever. */
  remove(name: string, why: string): void {
    if (!this.runtimes.delete(name)) return
    this.world.note(this.name, `${name} is gone: ${why}`)
    const channel = this.#channels.get(name)
    if (channel !== undefined) this.world.at(this.world.random.between(0.1, 5), channel.actor, 'a lost guest', () => channel.lose())
  }

  listen(name: string, channel: Channel): void {
    this.#channels.set(name, channel)
    this.#dial(name)
  }

  unlisten(name: string, channel: Channel): void {
    if (this.#channels.get(name) === channel) this.#channels.delete(name)
  }

  /** A guest takes an identity once; the same again is no change. @returns the status of its answer */
  identify(name: string, runtime: Runtime, body: unknown): number {
    const told = identityOf(body)
    if (runtime.identity !== null) return runtime.identity.sandbox === told.sandbox && runtime.identity.generation === told.generation ? 200 : 409
    runtime.identity = told
    this.world.note(this.name, `${name} is ${told.sandbox} of generation ${told.generation}`)
    this.#onIdentity(this, runtime)
    return 200
  }

  #setFrozen(frozen: boolean): void {
    this.world.note(this.name, `its warden ${frozen ? 'freezes' : 'thaws'} ${this.runtimes.size} runtimes`)
    for (const [name, runtime] of this.runtimes) {
      if (runtime.state === 'running') runtime.frozen = frozen
      if (!frozen) this.#dial(name)
    }
  }

  #dial(name: string): void {
    const runtime = this.runtimes.get(name)
    const channel = this.#channels.get(name)
    if (runtime?.state !== 'running' || runtime.frozen || channel === undefined || runtime.silent) return
    this.world.at(this.world.random.between(1, 30), channel.actor, 'a guest dials', () => {
      if (this.#channels.get(name) === channel && this.runtimes.get(name) === runtime) channel.hear(runtime)
    })
  }

  #newBootId(): string {
    return this.world.random.bytes(16).toString('hex')
  }
}

/** Of the process whose code runs. */
export function presentMachine(): Machine {
  const machine = machines.get(presentActor())
  if (machine === undefined) throw new Error('this process is on no machine')
  return machine
}
