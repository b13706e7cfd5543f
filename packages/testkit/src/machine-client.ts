/** The internal API of a control plane, asked as a machine asks it: by TLS, over connections that are kept, with a certificate. */
import type { IncomingMessage } from 'node:http'
import { type Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { CodedError, parseProblem } from '@sandglass/contract'
import { controlPlaneAgent, jsonPost, type OwnIdentity } from '@sandglass/identity'

const ANSWER_MS = 20_000

export class MachineClient {
  readonly #url: string
  readonly #agent: () => Agent

  constructor(url: string, identity: OwnIdentity) {
    this.#url = url
    this.#agent = controlPlaneAgent(identity, { keepAlive: true })
  }

  /** @throws CodedError what the control plane says */
  post(path: string, body: unknown): Promise<unknown> {
    return jsonPost(new URL(path, this.#url), body, this.#agent(), AbortSignal.timeout(ANSWER_MS))
  }

  /** A stream of text. @throws CodedError what the control plane says */
  async open(path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const asked = request(new URL(path, this.#url), { agent: this.#agent(), signal })
    asked.on('error', reject)
    asked.once('response', resolve)
    asked.end()
    const response = await promise
    if (response.statusCode === 200) return response.setEncoding('utf8')
    const problem = parseProblem(JSON.parse(await text(response)))
    throw new CodedError(problem?.code ?? 'internal', problem?.detail, problem?.epoch === undefined ? {} : { epoch: problem.epoch })
  }
}
