/**
 * The public API, spoken by hand: a crash test must see each answer, each refusal and each lost answer as it is, so nothing here repeats a
 * call by itself.
 */

import { type Host, HostSchema } from '@sandglass/contract/host'
import { type Problem, parseProblem } from '@sandglass/contract/problem'
import { type Exec, type ExecResult, ExecResultSchema, type Process, ProcessSchema } from '@sandglass/contract/process'
import { HostListSchema, SandboxListSchema } from '@sandglass/contract/public-api'
import { type CreateSandbox, type Sandbox, SandboxSchema } from '@sandglass/contract/sandbox'
import { type Parser, parserOf } from '@sandglass/contract/schema'

const sandboxes = parserOf(SandboxListSchema)
const sandbox = parserOf(SandboxSchema)
const hosts = parserOf(HostListSchema)
const host = parserOf(HostSchema)
const processes = parserOf(ProcessSchema)
const execResults = parserOf(ExecResultSchema)

const DEFAULT_TIMEOUT_MS = 30_000

/** The call may or may not have happened: no answer came. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** The answer was a problem document. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly problem: Problem

  constructor(call: string, problem: Problem) {
    super(`${call}: ${problem.status} ${problem.code}: ${problem.detail}`)
    this.problem = problem
  }
}

export type Answer = { readonly status: number; readonly headers: Headers; readonly bytes: Uint8Array }

export type Request = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly body?: Uint8Array<ArrayBuffer>
  readonly timeoutMs?: number
  /** Turns the back on the call after so many milliseconds, whatever became of it. */
  readonly dropAfterMs?: number | undefined
}

export type Where = Pick<Sandbox, 'id' | 'gateway_url'>

export class Api {
  readonly url: string
  readonly #apiKey: string

  constructor(url: string, apiKey: string) {
    this.url = url
    this.#apiKey = apiKey
  }

  get authorization(): Readonly<Record<string, string>> {
    return { authorization: `Bearer ${this.#apiKey}` }
  }

  /** @throws NoAnswer, Refusal */
  async send(request: Request): Promise<Answer> {
    const call = `${request.method} ${new URL(request.url).pathname}`
    const signal = AbortSignal.timeout(request.dropAfterMs ?? request.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    let answer: Answer
    try {
      const response = await fetch(request.url, {
        method: request.method,
        headers: { ...this.authorization, ...(request.json === undefined ? {} : { 'content-type': 'application/json' }), ...request.headers },
        ...(request.json === undefined ? (request.body === undefined ? {} : { body: request.body }) : { body: JSON.stringify(request.json) }),
        redirect: 'error',
        signal,
      })
      answer = { status: response.status, headers: response.headers, bytes: new Uint8Array(await response.arrayBuffer()) }
    } catch (cause) {
      throw new NoAnswer(`${call}: no answer (${reasonOf(cause)})`, { cause })
    }
    if (answer.status < 400) return answer
    const problem = parseProblem(jsonOf(answer.bytes))
    if (problem === undefined) throw new Error(`${call}: ${answer.status} without a problem document: ${textOf(answer.bytes).slice(0, 300)}`)
    throw new Refusal(call, problem)
  }

  async #read<T>(request: Request, parser: Parser<T>): Promise<T> {
    return parser.parse(jsonOf((await this.send(request)).bytes))
  }

  createSandbox(key: string, body: CreateSandbox, waitSeconds: number, dropAfterMs?: number): Promise<Sandbox> {
    const headers = { 'idempotency-key': key, ...prefer(waitSeconds) }
    return this.#read({ method: 'POST', url: `${this.url}/v1/sandboxes`, headers, json: body, timeoutMs: (waitSeconds + 10) * 1_000, dropAfterMs }, sandbox)
  }

  getSandbox(id: string): Promise<Sandbox> {
    return this.#read({ method: 'GET', url: `${this.url}/v1/sandboxes/${id}` }, sandbox)
  }

  runSandbox(key: string, want: 'start' | 'stop', id: string, waitSeconds: number): Promise<Sandbox> {
    const headers = { 'idempotency-key': key, ...prefer(waitSeconds) }
    return this.#read({ method: 'POST', url: `${this.url}/v1/sandboxes/${id}/${want}`, headers, timeoutMs: (waitSeconds + 10) * 1_000 }, sandbox)
  }

  async deleteSandbox(id: string, waitSeconds: number, dropAfterMs?: number): Promise<number> {
    const request: Request = {
      method: 'DELETE',
      url: `${this.url}/v1/sandboxes/${id}`,
      headers: prefer(waitSeconds),
      timeoutMs: (waitSeconds + 10) * 1_000,
      dropAfterMs,
    }
    return (await this.send(request)).status
  }

  /** Every sandbox, all pages. @param filter query without cursor, such as `include_ended=true` */
  async listSandboxes(filter: string): Promise<Sandbox[]> {
    const all: Sandbox[] = []
    for (let cursor = ''; ; ) {
      const page = await this.#read({ method: 'GET', url: `${this.url}/v1/sandboxes?limit=200&${filter}${cursor}` }, sandboxes)
      all.push(...page.items.map((item) => sandbox.parse(item)))
      if (page.next_cursor === null) return all
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
    }
  }

  async listHosts(): Promise<Host[]> {
    const page = await this.#read({ method: 'GET', url: `${this.url}/v1/hosts?limit=200` }, hosts)
    return page.items.map((item) => host.parse(item))
  }

  exec(where: Where, body: Exec, timeoutMs = DEFAULT_TIMEOUT_MS): Promise<ExecResult> {
    return this.#read({ method: 'POST', url: dataUrl(where, '/exec'), json: body, timeoutMs, headers: { accept: 'application/json' } }, execResults)
  }

  startInBackground(where: Where, body: Exec): Promise<Process> {
    return this.#read({ method: 'POST', url: dataUrl(where, '/exec'), json: { ...body, background: true } }, processes)
  }

  getProcess(where: Where, process: string): Promise<Process> {
    return this.#read({ method: 'GET', url: dataUrl(where, `/processes/${process}`) }, processes)
  }

  async killProcess(where: Where, process: string): Promise<void> {
    await this.send({ method: 'POST', url: dataUrl(where, `/processes/${process}/signal`), json: { signal: 'KILL' } })
  }

  /** Bytes of standard output from an offset on, exactly. @throws Refusal `output_gone` when some are no longer kept */
  async readOutput(where: Where, process: string, since: number): Promise<Uint8Array> {
    return (await this.send({ method: 'GET', url: dataUrl(where, `/processes/${process}/output?stream=stdout&since=${since}`) })).bytes
  }

  async writeFile(where: Where, path: string, content: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.send({ method: 'PUT', url: fileUrl(where, path), body: content, headers: { 'content-type': 'application/octet-stream' } })
  }

  async readFile(where: Where, path: string): Promise<Uint8Array> {
    return (await this.send({ method: 'GET', url: fileUrl(where, path) })).bytes
  }
}

const prefer = (waitSeconds: number): Record<string, string> => (waitSeconds === 0 ? {} : { prefer: `wait=${waitSeconds}` })

export const dataUrl = (where: Where, path: string): string => `${where.gateway_url.replace(/\/$/, '')}/v1/sandboxes/${where.id}${path}`
const fileUrl = (where: Where, path: string): string => dataUrl(where, `/files?path=${encodeURIComponent(path)}&user=root`)

export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(bytes))
  } catch {
    return undefined
  }
}

function reasonOf(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(inner instanceof Error)) return String(inner)
  return 'code' in inner && typeof inner.code === 'string' ? inner.code : inner.message
}
