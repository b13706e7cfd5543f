/** What each kind of fault does, and what undoes it. */
import type { Machine } from '../host/machine.ts'
import type { Random } from '../kernel/random.ts'
import type { World } from '../kernel/world.ts'
import type { Network } from '../network/network.ts'
import type { Replica } from '../replica/replica.ts'
import type { SimulatedPostgres } from '../store/simulated-postgres.ts'
import type { Kind, Mix } from './mix.ts'

export type Installation = {
  readonly world: World
  readonly postgres: SimulatedPostgres
  readonly network: Network
  readonly replicas: readonly Replica[]
  readonly machines: readonly Machine[]
}

type Scene = {
  readonly installation: Installation
  readonly random: Random
  readonly lastsMs: Mix['lastsMs']
  /** Chosen by chance, and so is the replica. */
  readonly machine: Machine
  readonly replica: Replica
  /** Between so many milliseconds from now. */
  later(from: number, to: number, undo: () => void): void
  crashAgent(machine: Machine): void
  crashReplica(replica: Replica): void
  restartAgent(machine: Machine): void
}

const HOUR_MS = 3_600_000

export const HAPPENINGS: Readonly<Record<Kind, (scene: Scene) => void>> = {
  partition({ installation: { network, replicas }, random, lastsMs, machine, replica, later }) {
    const cut = random.chance(0.6) ? replicas : [replica]
    for (const one of cut) network.cut(machine.name, one.name)
    later(...random.pick(lastsMs.partition), () => {
      for (const one of cut) network.heal(machine.name, one.name)
    })
  },
  agentCrash: ({ machine, crashAgent }) => crashAgent(machine),
  agentPause({ random, lastsMs, machine, later }) {
    machine.pauseAgent()
    later(...random.pick(lastsMs.agentPause), () => machine.resumeAgent())
  },
  reboot({ machine, later, restartAgent }) {
    machine.goDown()
    later(1_000, 15_000, () => {
      machine.comeUp()
      restartAgent(machine)
    })
  },
  replicaCrash: ({ replica, crashReplica }) => crashReplica(replica),
  replicaPause({ random, replica, later }) {
    replica.pause()
    later(200, random.pick([3_000, 15_000, 50_000]), () => replica.resume())
  },
  databaseOutage({ installation: { world, postgres, replicas }, later }) {
    if (postgres.isDown) return
    world.note('postgres', 'goes down')
    postgres.goDown()
    later(200, 12_000, () => {
      world.note('postgres', 'comes up')
      postgres.comeUp()
      for (const one of replicas) one.hearGap()
    })
  },
  slowDisk({ random, machine, later }) {
    machine.slowness = random.between(5, 200)
    later(500, 8_000, () => {
      machine.slowness = 1
    })
  },
  fullDisk({ installation: { world }, machine, later }) {
    world.note(machine.name, 'has a full disk')
    machine.disk.full = true
    later(500, 8_000, () => {
      machine.disk.full = false
    })
  },
  runtimeExit({ random, machine }) {
    const running = [...machine.runtimes.values()].filter(({ state }) => state === 'running')
    if (running.length > 0) machine.remove(random.pick(running).name, 'it ended by itself')
  },
  oldOrder({ installation: { network }, machine }) {
    network.tellAgain(machine.name)
  },
  wallStep({ installation: { world }, random, machine, replica }) {
    const { name, clock } = random.pick([machine, replica])
    clock.stepWall(random.between(-5, 5) * HOUR_MS)
    world.note(name, 'has its wall clock set')
  },
}
