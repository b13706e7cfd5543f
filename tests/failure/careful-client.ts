/**
 * A well-behaved client that writes down what was acknowledged. Each call is repeated with the same key until it succeeds, so a crash must never
 * show as an error, only as time; some answers are dropped on purpose.
 */
import type { CreateSandbox } from '@sandglass/contract/sandbox'
import { type Api, NoAnswer, Refusal, type Where } from './api.ts'
import { type Ledger, sha256 } from './ledger.ts'
import { persist } from './persist.ts'
import type { Random } from './seed.ts'

export const STEP_LIMIT_MS = 40_000
const WAIT_SECONDS = 20
/** Of every sandbox that is not asked for with others. */
export const RESOURCES = { vcpu: 0.25, memory_mb: 256, disk_gb: 1 }
const DROPPED_ANSWERS = 0.25
/** A dropped answer is dropped at a moment between nothing sent and everything done. */
const DROP_WITHIN_MS = 250
const UNFINISHED: ReadonlySet<string> = new Set(['pending', 'assigned', 'starting'])

export const CONTENT_PATH = '/root/content'

export class CarefulClient {
  readonly api: Api
  readonly ledger: Ledger
  /** Names the sandboxes of this client in their metadata. */
  readonly run: string

  constructor(api: Api, ledger: Ledger, run: string) {
    this.api = api
    this.ledger = ledger
    this.run = run
  }

  persist<T>(what: string, call: () => Promise<T>): Promise<T> {
    return persist({ limitMs: STEP_LIMIT_MS, what, onInternal: (text) => this.ledger.fault(text) }, call)
  }

  /** @param chance drops an answer now and then; absent: never. @throws Error when it does not become ready */
  async create(key: string, chance?: Random, resources: CreateSandbox['resources'] = RESOURCES): Promise<Where> {
    const body: CreateSandbox = { resources, metadata: { load: this.run, key }, ttl_seconds: 3_600 }
    this.ledger.asked.add(key)
    const dropAfterMs = dropOf(chance)
    if (dropAfterMs !== undefined) await ignoreAnswer(this.api.createSandbox(key, body, 0, dropAfterMs))
    const first = await this.persist(`creating with ${key}`, () => this.api.createSandbox(key, body, WAIT_SECONDS))
    this.ledger.created(key, first.id)
    const now = await this.persist(`${first.id} becoming ready`, async () => {
      const seen = await this.api.getSandbox(first.id)
      if (UNFINISHED.has(seen.status)) throw new NoAnswer(`it is ${seen.status}`)
      return seen
    })
    if (now.status !== 'ready') throw new Error(`${now.id} is ${now.status}: ${now.status_reason ?? ''}`)
    return now
  }

  /** What was written in it is gone with the stop, and owed to nobody. */
  async stopAndStart(key: string, id: string): Promise<void> {
    const { generation } = await this.persist(`stopping ${id}`, () => this.api.runSandbox(`${key}-stop`, 'stop', id, WAIT_SECONDS))
    this.ledger.files.delete(id)
    this.ledger.effects.delete(id)
    const now = await this.persist(`starting ${id}`, async () => {
      const seen = await this.api.runSandbox(`${key}-start`, 'start', id, WAIT_SECONDS)
      if (UNFINISHED.has(seen.status)) throw new NoAnswer(`it is ${seen.status}`)
      return seen
    })
    if (now.status !== 'ready') this.ledger.fault(`${id} is ${now.status} after its start: ${now.status_reason ?? ''}`)
    if (now.generation !== generation + 2) this.ledger.fault(`${id} went from generation ${generation} to ${now.generation} by one start`)
  }

  async write(where: Where, path: string, content: Uint8Array<ArrayBuffer>): Promise<void> {
    this.ledger.writing(where.id, path, content)
    await this.persist(`writing ${path} of ${where.id}`, () => this.api.writeFile(where, path, content))
    this.ledger.written(where.id, path, content)
  }

  /** A command with known output that leaves one line behind; the process key makes it happen once. */
  async execute(where: Where, processKey: string, content: Uint8Array): Promise<void> {
    const shell = `echo ${processKey} >> /root/effects; sha256sum < ${CONTENT_PATH}`
    const result = await this.persist(`running in ${where.id}`, () => this.api.exec(where, { shell, process_key: processKey }))
    this.ledger.ran(where.id, processKey)
    const expected = `${sha256(content)}  -\n`
    if (result.exit_code === 0 && result.stdout === expected) return
    this.ledger.fault(
      `${processKey} in ${where.id} gave ${result.exit_code} ${JSON.stringify(result.stdout)} ${JSON.stringify(result.stderr)}, not ${JSON.stringify(expected)}`,
    )
  }

  /** @param chance decides whether to wait for the end, and whether to drop an answer first; absent: waits */
  async delete(id: string, chance?: Random): Promise<void> {
    this.ledger.deleteAsked.add(id)
    const waitSeconds = chance?.chance(0.5) === false ? 0 : WAIT_SECONDS
    const dropAfterMs = dropOf(chance)
    if (dropAfterMs !== undefined) await ignoreAnswer(this.api.deleteSandbox(id, 0, dropAfterMs))
    const status = await this.persist(`deleting ${id}`, () => this.api.deleteSandbox(id, waitSeconds))
    if (status !== 202 && status !== 204) this.ledger.fault(`deleting ${id} answered ${status}`)
    this.ledger.deleted(id)
  }

  /** Deletes whatever was created and is not deleted yet. */
  async deleteAll(): Promise<void> {
    const left = [...this.ledger.creates.values()].filter((id) => !this.ledger.deleteAcknowledged.has(id))
    await Promise.all(left.map((id) => this.delete(id)))
  }

  /** Does it run commands, hold what was written, and did every acknowledged command happen once? */
  async contentFaults(where: Where): Promise<string[]> {
    const faults: string[] = []
    const { stdout } = await this.persist(`running in ${where.id}`, () => this.api.exec(where, { shell: 'cat /root/effects 2>/dev/null; echo alive' }))
    const lines = stdout.trimEnd().split('\n')
    if (lines.pop() !== 'alive') faults.push(`${where.id} does not run commands as it should: ${JSON.stringify(stdout)}`)
    for (const key of this.ledger.effects.get(where.id) ?? [])
      if (!lines.includes(key)) faults.push(`the command ${key} of ${where.id} was acknowledged and left nothing`)
    if (new Set(lines).size !== lines.length) faults.push(`a command of ${where.id} happened twice: ${lines.join(' ')}`)
    for (const [path, { acknowledged, possible }] of this.ledger.files.get(where.id) ?? []) {
      const found = await this.#digest(where, path)
      if (found !== acknowledged && !(found !== undefined && possible.has(found)))
        faults.push(`${path} of ${where.id} holds ${found}, acknowledged was ${acknowledged}`)
    }
    return faults
  }

  async #digest(where: Where, path: string): Promise<string | undefined> {
    try {
      return sha256(await this.persist(`reading ${path} of ${where.id}`, () => this.api.readFile(where, path)))
    } catch (error) {
      if (error instanceof Refusal && error.problem.code === 'file_not_found') return undefined
      throw error
    }
  }
}

const dropOf = (chance: Random | undefined): number | undefined => (chance?.chance(DROPPED_ANSWERS) === true ? 1 + chance.integer(DROP_WITHIN_MS) : undefined)

/** Whatever the answer would have been, the client is gone. */
async function ignoreAnswer(call: Promise<unknown>): Promise<void> {
  try {
    await call
  } catch (error) {
    if (!(error instanceof NoAnswer || error instanceof Refusal)) throw error
  }
}
