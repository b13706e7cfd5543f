/** The control plane's internal API, as the gateway uses it. */
import {
  type Access,
  type AccessQuestion,
  AccessSchema,
  CodedError,
  ERRORS,
  type FeedEvent,
  FeedEventSchema,
  LIMITS,
  parseProblem,
  parserOf,
} from '@sandglass/contract'
import { type JsonAnswer, type JsonQuestion, jsonQuestion } from './json-question.ts'

const QUESTION_TIMEOUT_MS = 3_000
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
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #ask: JsonQuestion

  /** @param gatewayToken the secret that the control plane knows this gateway by */
  constructor(controlUrl: string, gatewayToken: string) {
    this.#base = controlUrl
    this.#headers = { authorization: `Bearer ${gatewayToken}` }
    this.#ask = jsonQuestion(new URL('/internal/v1/access', controlUrl), this.#headers)
  }

  async access(question: AccessQuestion): Promise<Access> {
    const { status, value } = await this.#askTwice(question)
    if (status === 200) return access.parse(value)
    const problem = parseProblem(value)
    if (problem?.code === 'sandbox_not_found')
      throw new CodedError('sandbox_not_found', `There is no sandbox ${question.sandbox_id}. ${ERRORS.sandbox_not_found.next}`)
    // The control plane says this of the client's key; of the gateway's own token it says `forbidden`.
    if (problem?.code === 'unauthenticated') throw new CodedError('unauthenticated')
    throw unreachable(new Error(`the control plane answered ${status} ${problem?.code ?? ''}`))
  }

  async #askTwice(question: AccessQuestion): Promise<JsonAnswer> {
    try {
      return await this.#ask(question, QUESTION_TIMEOUT_MS, 'kept')
    } catch {
      // A kept connection may have been closed by the other side just now. The question changes nothing, so it may be asked again.
      return await this.#ask(question, QUESTION_TIMEOUT_MS, 'own').catch((cause: unknown) => {
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
    try {
      const response = await fetch(new URL('/internal/v1/feed', this.#base), { headers: this.#headers, signal: stop })
      if (!response.ok || response.body === null) throw new Error(`the feed answered ${response.status}`)
      for await (const line of lines(response.body)) {
        heard()
        if (line !== '') yield feedEvent.parse(JSON.parse(line))
      }
    } finally {
      clearTimeout(timer)
    }
  }
}
