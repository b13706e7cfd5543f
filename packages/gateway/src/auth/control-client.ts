/** The control plane's internal API, as the gateway uses it: of whichever replica answers. */
import type { IncomingMessage } from 'node:http'
import { type Agent, request } from 'node:https'
import {
  type Access,
  type AccessQuestion,
  AccessSchema,
  askReplicas,
  CodedError,
  ERRORS,
  type FeedEvent,
  FeedEventSchema,
  LIMITS,
  parseProblem,
  parserOf,
  Replicas,
} from '@sandglass/contract'
import { controlPlaneAgent, type OwnIdentity, secureUrl } from '@sandglass/identity'
import { type JsonAnswer, type JsonQuestion, jsonQuestion } from './json-question.ts'

const QUESTION_TIMEOUT_MS = 3_000
/** A question that is not answered by then is asked of the next replica as well: it changes nothing. */
const QUESTION_PATIENCE_MS = 500
const FEED_LINE_BYTES = 64 * 1024
const access = parserOf(AccessSchema)
const feedEvent = parserOf(FeedEventSchema)

export type ControlClient = {
  /** @throws CodedError `unauthenticated`, `sandbox_not_found`, `unavailable` */
  access(question: AccessQuestion): Promise<Access>
  /** Events as they come; ends or throws when the connection is lost or silent. */
  feed(signal: AbortSignal): AsyncGenerator<FeedEvent>
}

const unreachable = (cause: unknown) => new CodedError('unavailable', 'The control plane cannot be reached from the gateway; try again in a moment.', { cause })

/** Lines of a byte stream. @throws Error when a line is too long */
async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    if (rest.length > FEED_LINE_BYTES) throw new Error('a line of the feed is too long')
    yield* parts
  }
}

export class HttpControlClient implements ControlClient {
  readonly #replicas: Replicas
  /** The feed goes its own way: a replica may be slow to answer and still tell all there is to tell. */
  readonly #feeds: Replicas
  readonly #agent: () => Agent
  readonly #questions: ReadonlyMap<string, JsonQuestion>

  /** @param controlUrls of their listeners for machines @throws CodedError `invalid_request` when one is not TLS */
  constructor(controlUrls: readonly [string, ...string[]], identity: OwnIdentity) {
    for (const url of controlUrls) secureUrl(url, 'SANDGLASS_CONTROL_URL')
    this.#replicas = new Replicas(controlUrls)
    this.#feeds = new Replicas(controlUrls)
    this.#agent = controlPlaneAgent(identity, { keepAlive: false })
    this.#questions = new Map(controlUrls.map((url) => [url, jsonQuestion(new URL('/internal/v1/access', url), identity)]))
  }

  access(question: AccessQuestion): Promise<Access> {
    return askReplicas(this.#replicas, (url, signal) => this.#accessAt(url, question, signal), {
      patienceMs: QUESTION_PATIENCE_MS,
      isAnswer: (error) => error instanceof CodedError && error.code !== 'unavailable',
    })
  }

  async #accessAt(url: string, question: AccessQuestion, signal: AbortSignal): Promise<Access> {
    const { status, value } = await this.#askTwice(url, question, signal)
    if (status === 200) return access.parse(value)
    const problem = parseProblem(value)
    if (problem?.code === 'sandbox_not_found')
      throw new CodedError('sandbox_not_found', `There is no sandbox ${question.sandbox_id}. ${ERRORS.sandbox_not_found.next}`)
    // The control plane says this of the client's key; of the gateway's own certificate it has words of its own.
    if (problem?.code === 'unauthenticated') throw new CodedError('unauthenticated')
    throw unreachable(new Error(`the control plane answered ${status} ${problem?.code ?? ''}`))
  }

  async #askTwice(url: string, question: AccessQuestion, signal: AbortSignal): Promise<JsonAnswer> {
    const ask = this.#questions.get(url)
    if (ask === undefined) throw new Error(`${url} is no replica`)
    try {
      return await ask(question, QUESTION_TIMEOUT_MS, 'kept', signal)
    } catch {
      // A kept connection may have been closed by the other side just now. The question changes nothing, so it may be asked again.
      return await ask(question, QUESTION_TIMEOUT_MS, 'own', signal).catch((cause: unknown) => {
        throw unreachable(cause)
      })
    }
  }

  async *feed(signal: AbortSignal): AsyncGenerator<FeedEvent> {
    const silence = new AbortController()
    const stop = AbortSignal.any([signal, silence.signal])
    const heard = () => {
      clearTimeout(timer)
      timer = setTimeout(() => silence.abort(new Error('the feed is silent')), LIMITS.feedSilenceMs)
    }
    let timer = setTimeout(() => undefined, 0)
    heard()
    const base = this.#feeds.current
    try {
      const response = await this.#open(new URL('/internal/v1/feed', base), stop)
      if (response.statusCode !== 200) throw new Error(`the feed answered ${response.statusCode}`)
      for await (const line of lines(response)) {
        heard()
        if (line !== '') yield feedEvent.parse(JSON.parse(line))
      }
    } finally {
      clearTimeout(timer)
      // However it ended, the next one is with another replica: this one may be about to stop.
      this.#feeds.failed(base)
    }
  }

  #open(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const asked = request(url, { agent: this.#agent(), signal })
      asked.once('response', resolve)
      asked.on('error', reject)
      asked.end()
    })
  }
}
