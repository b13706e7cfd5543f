/** One round of `top`: who runs, and what each uses. */
import { Sandbox, type SandboxResource, type SandboxUsage, type Sandglass, SandglassError } from '@sandglass/sdk'
import { type Rates, ratesOf } from './rates.ts'

export type Row = {
  readonly sandbox: SandboxResource
  /** Null when its host could not be asked now. */
  readonly usage: SandboxUsage | null
  readonly rates: Rates | null
}

const PAGE = 200
const AT_ONCE = 16

/** Remembers the last count of each sandbox. */
export class Sampler {
  readonly #client: Sandglass
  readonly #wanted: readonly string[]
  #last = new Map<string, SandboxUsage>()

  /** @param wanted ids or names; empty: all */
  constructor(client: Sandglass, wanted: readonly string[]) {
    this.#client = client
    this.#wanted = wanted
  }

  /** Busiest first. @throws SandglassError when the API cannot be asked */
  async round(signal: AbortSignal): Promise<Row[]> {
    const queue = await this.#running(signal)
    const rows: Row[] = []
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) rows.push(await this.#row(next, signal))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    this.#last = new Map(rows.flatMap(({ sandbox, usage }) => (usage === null ? [] : [[sandbox.id, usage] as const])))
    return rows.sort(busiestFirst)
  }

  async #running(signal: AbortSignal): Promise<Sandbox[]> {
    const found: Sandbox[] = []
    if (this.#wanted.length > 0) for (const id of this.#wanted) found.push(await Sandbox.get(id, { client: this.#client, signal }))
    else for await (const sandbox of Sandbox.list({ client: this.#client, status: 'ready', pageSize: PAGE, signal })) found.push(sandbox)
    return found
  }

  async #row(sandbox: Sandbox, signal: AbortSignal): Promise<Row> {
    try {
      const usage = await sandbox.usage({ signal })
      return { sandbox: sandbox.resource, usage, rates: ratesOf(this.#last.get(sandbox.id), usage) }
    } catch (error) {
      // One that has just ended, or whose host is away, does not spoil the table of the others.
      if (error instanceof SandglassError) return { sandbox: sandbox.resource, usage: null, rates: null }
      throw error
    }
  }
}

function busiestFirst(a: Row, b: Row): number {
  return (b.rates?.cpuPercent ?? -1) - (a.rates?.cpuPercent ?? -1) || a.sandbox.id.localeCompare(b.sandbox.id)
}
