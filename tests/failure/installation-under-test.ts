/** A real installation, and what a crash test needs of it: its API, its processes, its traces on the machine, its books. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Installation, startInstallation } from '../e2e/installation.ts'
import { Api } from './api.ts'
import type { Quota } from './judge.ts'
import { inventory, type Thing, unshared } from './leftovers.ts'
import { until } from './persist.ts'
import { type Books, booksOf, readQuota } from './quota.ts'
import type { Role } from './roles.ts'

const LAST_LINES = 25
const GONE_LIMIT_MS = 30_000
/** A host forgets an ended sandbox once LIMITS.ticketTerms renewals have passed; this is twice that. */
const FORGOTTEN_LIMIT_MS = 90_000

export class InstallationUnderTest implements AsyncDisposable {
  readonly home: string
  readonly api: Api
  readonly #installation: Installation
  readonly #books: Books
  readonly #stop: () => Promise<void>

  private constructor(installation: Installation, stop: () => Promise<void>) {
    this.#installation = installation
    this.home = installation.home
    this.api = new Api(installation.apiUrl, installation.operatorKey)
    this.#books = booksOf(installation.home)
    this.#stop = stop
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<InstallationUnderTest> {
    const { installation, stop } = await startInstallation(env)
    return new InstallationUnderTest(installation, stop)
  }

  inventory(): Thing[] {
    return inventory({ home: this.home })
  }

  quota(): Promise<Quota> {
    return readQuota(this.#books)
  }

  /** The ends of the logs that tell why a role is not there. */
  lastWords(role: Role): string {
    return ['supervisor', role].map((name) => `--- ${name}.log\n${endOf(join(this.home, 'log', `${name}.log`))}`).join('\n')
  }

  /** Sandboxes stay. */
  async down(): Promise<void> {
    await this.#installation.ok(['down'])
  }

  async up(): Promise<void> {
    await this.#installation.ok(['up', '--detach'])
  }

  /** What is on the machine although no sandbox is left, and is not shared by all: nothing, after a while. */
  async sandboxTraces(): Promise<string[]> {
    return emptied(GONE_LIMIT_MS, () =>
      unshared(
        this.inventory().filter((thing) => thing.kind !== 'record'),
        this.home,
      ),
    )
  }

  /** The same with the records, which a host keeps until no late ticket can arrive. */
  async lastingTraces(): Promise<string[]> {
    return emptied(FORGOTTEN_LIMIT_MS, () => unshared(this.inventory(), this.home))
  }

  /** Takes it down and proves that nothing of it is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop()
    const left = await emptied(GONE_LIMIT_MS, () => this.inventory().map((thing) => `left over: ${thing.kind} ${thing.what}`))
    if (left.length > 0) throw new Error(`after down --sandboxes:\n${left.join('\n')}`)
  }
}

function endOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-LAST_LINES).join('\n')
  } catch (error) {
    return String(error)
  }
}

/** Waits for a list to become empty; what is still in it at the bound. */
async function emptied(limitMs: number, list: () => string[]): Promise<string[]> {
  let lines: string[] = []
  await until(limitMs, 'nothing being left', () => {
    lines = list()
    return lines.length === 0 ? true : undefined
  }).catch(() => undefined)
  return lines
}
