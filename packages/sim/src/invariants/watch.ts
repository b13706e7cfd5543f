/** Looks at every invariant: the tables' after each commit, the machines' after each step. The first that is broken ends the run. */
import type { Machine } from '../host/machine.ts'
import type { World } from '../kernel/world.ts'
import type { Commit, SimulatedPostgres } from '../store/simulated-postgres.ts'
import { brokenIdentity, brokenMachines, brokenReleases } from './machine-invariants.ts'
import { type Snapshot, takeSnapshot } from './snapshot.ts'
import { type Broken, brokenNow, brokenSince } from './table-invariants.ts'

/** Renewals, the outbox and positions of events: by themselves they break nothing that the next look does not find. */
const ROUTINE = /SET seq = seq \+ 1, renewed_at|DELETE FROM sandglass.outbox|UPDATE sandglass.events AS event/

export class Watch {
  readonly #world: World
  readonly #postgres: SimulatedPostgres
  readonly #machines: readonly Machine[]
  #now: Snapshot
  #isOld = false

  constructor(world: World, postgres: SimulatedPostgres, machines: readonly Machine[]) {
    this.#world = world
    this.#postgres = postgres
    this.#machines = machines
    this.#now = takeSnapshot(postgres)
    world.onStep(() => this.#tell(brokenMachines(this.#now, machines)))
    for (const machine of machines) machine.onIdentity((on, runtime) => this.#tell([brokenIdentity(on, runtime) ?? []].flat()))
  }

  /** As it is behind the newest commit. */
  get snapshot(): Snapshot {
    if (this.#isOld && this.#postgres.mayLook) this.#look()
    return this.#now
  }

  committed(commit: Commit): void {
    if (commit.texts.every((text) => ROUTINE.test(text))) {
      this.#isOld ||= commit.texts.length > 0
      return
    }
    const before = this.#now
    this.#look()
    this.#tell(brokenNow(this.#now))
    this.#tell(brokenSince(before, this.#now, commit))
    this.#tell(brokenReleases(before, this.#now, this.#machines))
    this.#note(before)
  }

  #look(): void {
    this.#now = takeSnapshot(this.#postgres)
    this.#isOld = false
  }

  #tell(sentences: Iterable<Broken>): void {
    const [sentence] = sentences
    if (sentence !== undefined) this.#world.violate(sentence)
  }

  #note(before: Snapshot): void {
    const known = new Map(before.sandboxes.map((sandbox) => [sandbox.id, sandbox]))
    for (const { id, observed, desired, generation } of this.#now.sandboxes) {
      const was = known.get(id)
      if (was?.observed !== observed || was.generation !== generation)
        this.#world.note('tables', `${id} is ${observed}, wanted ${desired}, generation ${generation}`)
    }
    const released = new Map(before.assignments.map(({ id, released_by }) => [id, released_by]))
    for (const { id, sandbox, generation, host, released_by: by } of this.#now.assignments) {
      if (!released.has(id)) this.#world.note('tables', `${sandbox} generation ${generation} is assigned to ${this.#nameOf(host)}`)
      else if (released.get(id) !== by) this.#world.note('tables', `${sandbox} generation ${generation} is released by ${by}`)
    }
    const leases = new Map(before.hosts.map(({ id, epoch }) => [id, epoch]))
    for (const { id, name, epoch } of this.#now.hosts) if (leases.get(id) !== epoch) this.#world.note('tables', `${name} has epoch ${epoch}`)
  }

  #nameOf(host: string): string {
    return this.#now.hosts.find(({ id }) => id === host)?.name ?? host
  }
}
