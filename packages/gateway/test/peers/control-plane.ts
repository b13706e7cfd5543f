/** A control plane's internal API, scripted: who may reach what, and a feed that can be written to, silenced and cut. */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import {
  type Access,
  type AccessQuestion,
  AccessQuestionSchema,
  type FeedEvent,
  parserOf,
  type Role,
  type Route,
  type SandboxStatus,
} from '@sandglass/contract'
import { TEST_AUTHORITY } from '@sandglass/testkit'

const question = parserOf(AccessQuestionSchema)
const HEARTBEAT_MS = 200

export const GATEWAY = TEST_AUTHORITY.identity({ role: 'gateway', name: 'test' })

export type ScriptedKey = { readonly text: string; readonly id: string; role: Role; revoked: boolean }
export type ScriptedSandbox = { status: SandboxStatus; route: Route | null }

export class ScriptedControlPlane {
  readonly keys = new Map<string, ScriptedKey>()
  readonly sandboxes = new Map<string, ScriptedSandbox>()
  readonly questions: AccessQuestion[] = []
  isFeedSilent = false
  isFeedRefused = false
  isDown = false
  #held: (() => void)[] | undefined
  readonly #feeds = new Set<ServerResponse>()
  readonly #server: Server
  readonly #heartbeat: NodeJS.Timeout

  constructor() {
    this.#server = createServer(TEST_AUTHORITY.server({ role: 'control-plane', name: 'scripted' }), (request, response) => void this.#handle(request, response))
    this.#heartbeat = setInterval(() => this.emit({ type: 'heartbeat' }), HEARTBEAT_MS)
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('no address')
    return `https://127.0.0.1:${address.port}`
  }

  addKey(role: Role): ScriptedKey {
    const text = `sgk_${randomBytes(32).toString('base64url')}`
    const key: ScriptedKey = { text, id: `ak${'a'.repeat(15)}${'abcdefgh'[this.keys.size] ?? 'z'}`, role, revoked: false }
    this.keys.set(createHash('sha256').update(text).digest('hex'), key)
    return key
  }

  emit(event: FeedEvent): void {
    if (this.isFeedSilent) return
    for (const feed of this.#feeds) feed.write(`${JSON.stringify(event)}\n`)
  }

  /** Answers are made, but stay on their way. */
  holdAnswers(): void {
    this.#held = []
  }

  releaseAnswers(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const answer of held) answer()
  }

  cutFeed(): void {
    for (const feed of this.#feeds) feed.destroy()
  }

  async close(): Promise<void> {
    clearInterval(this.#heartbeat)
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.isDown) {
      request.destroy()
      return
    }
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.url === '/internal/v1/feed') this.#openFeed(response)
    else this.#answerAccess(question.parse(JSON.parse(Buffer.concat(chunks).toString())), response)
  }

  #openFeed(response: ServerResponse): void {
    if (this.isFeedRefused) {
      problem(response, 503, 'unavailable')
      return
    }
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    response.write('{"type":"heartbeat"}\n')
    this.#feeds.add(response)
    response.once('close', () => this.#feeds.delete(response))
  }

  #answerAccess(asked: AccessQuestion, response: ServerResponse): void {
    this.questions.push(asked)
    const key = this.keys.get(asked.key_sha256)
    const sandbox = this.sandboxes.get(asked.sandbox_id)
    if (key === undefined || key.revoked || sandbox === undefined) {
      const isKnown = key !== undefined && !key.revoked
      problem(response, isKnown ? 404 : 401, isKnown ? 'sandbox_not_found' : 'unauthenticated')
      return
    }
    const { role } = key
    const access: Access = { tenant_id: 'te', api_key_id: key.id, role, status: sandbox.status, status_reason: null, route: sandbox.route }
    const answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(access))
    if (this.#held === undefined) answer()
    else this.#held.push(answer)
  }
}

function problem(response: ServerResponse, status: number, code: string): void {
  const body = { type: `/docs/errors#${code}`, title: code, status, detail: code, code, retryable: false }
  response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(body))
}
