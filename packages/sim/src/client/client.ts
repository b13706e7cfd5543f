/** One who asks the API: every change has a key and is asked again with it until it is answered, as the SDK does. */
import { CodedError, parseProblem, parserOf, SandboxSchema } from '@sandglass/contract'
import { Actor } from '../kernel/actor.ts'
import { Clockwork } from '../kernel/clockwork.ts'
import type { Random } from '../kernel/random.ts'
import type { World } from '../kernel/world.ts'
import type { Network, Request } from '../network/network.ts'
import type { Replica } from '../replica/replica.ts'

const REQUEST_MS = 15_000
const ATTEMPTS = 12

const sandboxes = parserOf(SandboxSchema)

export type Answer = { readonly status: number; readonly body: unknown }

export class Client {
  readonly world: World
  readonly random: Random
  readonly actor: Actor
  readonly #network: Network
  readonly #key: string
  #keys = 0

  constructor(world: World, name: string, network: Network, key: string) {
    this.world = world
    this.#network = network
    this.#key = key
    this.random = world.random.split()
    this.actor = new Actor(world, name, new Clockwork(1, 0))
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms))
  }

  newKey(): string {
    this.#keys += 1
    return `${this.actor.name}-${this.#keys}`
  }

  /** @returns undefined when nobody answered, however often it was asked @throws CodedError what the API refuses */
  async ask(
    request: Pick<Request, 'method' | 'url'>,
    options: { key?: string; body?: unknown; waitSeconds?: number; at?: Replica } = {},
  ): Promise<Answer | undefined> {
    const what = `${request.method} ${request.url}`
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (attempt > 0) await this.pause(this.random.between(50, 1_500))
      const answer = await this.#once(request, options)
      if (answer === undefined || answer.status === 503) continue
      if (answer.status < 400) {
        this.world.note(this.actor.name, `${what}: ${answer.status}`)
        return answer
      }
      const problem = parseProblem(answer.body)
      if (problem?.code === 'idempotency_in_progress' || (answer.status === 429 && problem?.code !== 'quota_exceeded')) continue
      this.world.note(this.actor.name, `${what}: ${answer.status} ${problem?.code}`)
      if (problem?.code === 'internal' || problem === undefined) this.world.violate(`${what} was answered ${answer.status}: ${JSON.stringify(answer.body)}`)
      throw new CodedError(problem?.code ?? 'internal', problem?.detail)
    }
    this.world.note(this.actor.name, `${what}: given up`)
    return undefined
  }

  async #once(
    { method, url }: Pick<Request, 'method' | 'url'>,
    { key, body, waitSeconds, at }: { key?: string; body?: unknown; waitSeconds?: number; at?: Replica },
  ): Promise<Answer | undefined> {
    const headers = {
      authorization: `Bearer ${this.#key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(waitSeconds === undefined ? {} : { prefer: `wait=${waitSeconds}` }),
    }
    const request = { method, url, headers, body: body === undefined ? undefined : JSON.stringify(body) }
    const signal = AbortSignal.timeout(REQUEST_MS + (waitSeconds ?? 0) * 1_000)
    try {
      const answer = await this.#network.send({ end: this.actor.name, actor: this.actor }, request, signal, at)
      const chunks: Uint8Array[] = []
      for await (const chunk of answer) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString('utf8')
      return { status: answer.statusCode, body: text === '' ? undefined : JSON.parse(text) }
    } catch {
      return undefined
    }
  }
}

/** @throws CodedError of what is no sandbox */
export const sandboxOf = (answer: Answer): ReturnType<typeof sandboxes.parse> => sandboxes.parse(answer.body)
