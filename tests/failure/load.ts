/**
 * A bounded, seeded load against a real installation: short-lived sandboxes are created, written to, run in and deleted, residents are written
 * to, and everything that was acknowledged stands in a ledger.
 */
import type { CreateSandbox } from '@sandglass/contract/sandbox'
import type { Where } from './api.ts'
import { type CarefulClient, CONTENT_PATH, STEP_LIMIT_MS } from './careful-client.ts'
import { Gate } from './gate.ts'
import { Resident } from './resident.ts'
import { type Random, randomOf } from './seed.ts'

const FILE_BYTES = 64 * 1024

export type LoadSize = { readonly residents: number; readonly workers: number; readonly resources?: CreateSandbox['resources'] }

export class Load implements AsyncDisposable {
  readonly residents: readonly Resident[]
  readonly #client: CarefulClient
  readonly #gate = new Gate()
  readonly #workers: Promise<void>[] = []
  #stopping = false

  private constructor(client: CarefulClient, residents: readonly Resident[]) {
    this.#client = client
    this.residents = residents
  }

  /** Makes the residents and sets the workers going. */
  static async start(client: CarefulClient, seed: string, size: LoadSize): Promise<Load> {
    const residents = await Promise.all(
      Array.from({ length: size.residents }, async (_, index) =>
        Resident.settleIn(client, await client.create(`${client.run}-resident-${index}`, undefined, size.resources), randomOf(seed, 'resident', index)),
      ),
    )
    const load = new Load(client, residents)
    for (let index = 0; index < size.workers; index += 1) load.#workers.push(load.#work(index, randomOf(seed, 'worker', index)))
    if (residents.length > 0 && size.workers > 0) load.#workers.push(load.#visit(randomOf(seed, 'visit')))
    return load
  }

  /** Waits for the steps under way; nothing is in flight afterwards. */
  pause(): Promise<void> {
    return this.#gate.close(3 * STEP_LIMIT_MS)
  }

  resume(): void {
    this.#gate.open()
  }

  /** Ends the workers and deletes every sandbox of this load. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true
    this.#gate.open()
    await Promise.all(this.#workers)
    for (const resident of this.residents) resident.leave()
    await this.#client.deleteAll()
  }

  async #visit(random: Random): Promise<void> {
    while (!this.#stopping) {
      const resident = this.residents[random.integer(this.residents.length)]
      if (resident !== undefined) await this.#step(`writing into ${resident.where.id}`, () => resident.work())
    }
  }

  /** One step between two passes of the gate. A step that fails is a fault of the product. */
  #step<T>(what: string, run: () => Promise<T>): Promise<T | undefined> {
    return this.#gate.step(async () => {
      if (this.#stopping) return undefined
      try {
        return await run()
      } catch (error) {
        this.#client.ledger.fault(`${what}: ${messageOf(error)}`)
        return undefined
      }
    })
  }

  async #work(worker: number, random: Random): Promise<void> {
    const client = this.#client
    for (let round = 0; !this.#stopping; round += 1) {
      const key = `${client.run}-${worker}-${round}`
      const where = await this.#step(`creating ${key}`, (): Promise<Where> => client.create(key, random))
      if (where === undefined) continue
      const content = random.bytes(random.integer(FILE_BYTES))
      await this.#step(`writing into ${where.id}`, () => client.write(where, CONTENT_PATH, content))
      await this.#step(`running in ${where.id}`, () => client.execute(where, `${key}-sum`, content))
      await this.#step(`deleting ${where.id}`, () => client.delete(where.id, random))
    }
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}
