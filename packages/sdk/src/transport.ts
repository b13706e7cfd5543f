/**
 * One HTTP call with deadline, abort, error mapping and bounded repeats. Knows nothing of what is being called.
 */
import type { Parser } from '@sandglass/contract/schema'
import { errorOfAnswer, jsonOf, parseAnswer, parseRetryAfter, SandglassError } from './error.ts'
import { Places, wasNeverReached } from './places.ts'
import { planRetry, type RetryPolicy } from './retry.ts'
import { chunksOf, streamOf } from './streams.ts'
import { sleep, type World } from './world.ts'

/** Accepted by every call of the SDK. */
export type CallOptions = {
  /** Stops the call; it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds that the call may take, repeats included. @throws SandglassError `client_timeout` */
  readonly timeoutMs?: number | undefined
}

export type Call = CallOptions & {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD'
  /** Absolute, with query. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  /** A function makes it anew for each attempt, and never fails. */
  readonly body?: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | (() => ReadableStream<Uint8Array>)
  /** May it be sent again when the answer is lost? */
  readonly repeatable: boolean
  /** How often, when it is repeatable. */
  readonly retry?: RetryPolicy
}

/** W3C trace context of what the caller is doing now; undefined outside any trace. */
export type TraceparentSource = () => string | undefined

const DEFAULT_TIMEOUT_MS = 60_000
/** What another place may not say. */
const OF_ONE_PLACE: ReadonlySet<string> = new Set(['unavailable', 'overloaded', 'lost_contact'])
const ERROR_BODY_BYTES = 64 * 1024
const HEADERS_TIMEOUT_CODE = 'UND_ERR_HEADERS_TIMEOUT'

/** Aborts with the caller's signal or at the deadline, and knows which it was. */
class Deadline implements Disposable {
  readonly #controller = new AbortController()
  readonly #signal: AbortSignal | undefined
  #cancel: () => void = () => undefined
  #expired = false

  constructor(world: World, signal: AbortSignal | undefined, timeoutMs: number) {
    this.#signal = signal
    if (Number.isFinite(timeoutMs)) {
      this.#cancel = world.timer(timeoutMs, () => {
        this.#expired = true
        this.#controller.abort()
      })
    }
  }

  get signal(): AbortSignal {
    return this.#signal === undefined ? this.#controller.signal : AbortSignal.any([this.#controller.signal, this.#signal])
  }

  /** Throws when the caller stopped it or time is over. */
  check(): void {
    this.#signal?.throwIfAborted()
    if (this.#expired) throw new SandglassError('client_timeout')
  }

  [Symbol.dispose](): void {
    this.#cancel()
  }
}

/** A body that remembers why it ended early: what its source threw is the caller's to see, and no failure of the network. */
class BodySource {
  readonly body: Exclude<Call['body'], () => unknown>
  #failure: { readonly error: unknown } | undefined

  constructor(body: Call['body']) {
    if (typeof body === 'function') this.body = body()
    else this.body = body instanceof ReadableStream ? streamOf(this.#remembering(body)) : body
  }

  /** Throws what the source threw. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async *#remembering(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* chunksOf(body)
    } catch (error) {
      this.#failure = { error }
      throw error
    }
  }
}

function networkError(url: string, cause: unknown): SandglassError {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const why = inner instanceof Error ? ('code' in inner && typeof inner.code === 'string' ? inner.code : inner.message) : String(inner)
  return new SandglassError('unavailable', `Cannot reach ${new URL(url).origin} (${why}). Is Sandglass running there?`, { cause })
}

/** Node.js gives up on an answer's headers after five minutes; a repeatable call with a longer deadline of its own just asks again. */
function isHeadersTimeout(error: SandglassError): boolean {
  const { cause } = error
  const inner = cause instanceof Error ? cause.cause : undefined
  return inner instanceof Error && 'code' in inner && inner.code === HEADERS_TIMEOUT_CODE
}

async function boundedText(response: Response): Promise<string> {
  if (response.body === null) return ''
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of chunksOf(response.body)) {
    text += decoder.decode(chunk, { stream: true })
    bytes += chunk.byteLength
    if (bytes > ERROR_BODY_BYTES) break
  }
  return text
}

/** The body of an answer whose failures are errors of ours: a connection that breaks is `lost_contact`, an abort is the caller's reason. */
export function bodyOf(response: Response, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const reader = response.body?.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await readNext(reader, signal)
        if (next === undefined) controller.close()
        else controller.enqueue(next)
      },
      async cancel(reason) {
        await reader?.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

async function readNext(reader: ReadableStreamDefaultReader<Uint8Array> | undefined, signal: AbortSignal | undefined): Promise<Uint8Array | undefined> {
  try {
    return (await reader?.read())?.value
  } catch (cause) {
    signal?.throwIfAborted()
    throw new SandglassError('lost_contact', 'The connection broke before the answer was complete. Ask again.', { cause })
  }
}

export class Transport {
  readonly world: World
  /** Base URL of the API: where codes are documented, whoever says them. */
  readonly apiUrl: string
  readonly places = new Places()
  readonly #apiKey: string
  readonly #traceparent: TraceparentSource

  constructor(
    { url, urls = [url], apiKey }: { readonly url: string; readonly urls?: readonly string[]; readonly apiKey: string },
    world: World,
    traceparent: TraceparentSource = () => undefined,
  ) {
    this.apiUrl = url
    this.places.learn(urls)
    this.#apiKey = apiKey
    this.world = world
    this.#traceparent = traceparent
  }

  /** Of every request and every WebSocket: the key, and the trace that the caller is in. */
  get headers(): Readonly<Record<string, string>> {
    const traceparent = this.#traceparent()
    return { authorization: `Bearer ${this.#apiKey}`, ...(traceparent === undefined ? {} : { traceparent }) }
  }

  /**
   * Sends and parses a JSON answer.
   * @throws SandglassError
   */
  async json<T>(call: Call, parser: Parser<T>): Promise<T> {
    return this.run(call, async (response) => {
      const value = jsonOf(await response.text())
      return parseAnswer((input) => parser.parse(input), value, `answer to ${call.method} ${new URL(call.url).pathname}`)
    })
  }

  /** Sends and forgets the body of the answer. */
  async empty(call: Call): Promise<void> {
    await this.run(call, async (response) => {
      await response.body?.cancel()
    })
  }

  /**
   * Sends, and hands over the answer as soon as its headers are there; the deadline ends there too, the caller's signal goes on to stop the body.
   * @throws SandglassError
   */
  async open(call: Call): Promise<Response> {
    return this.run(call, async (response) => response)
  }

  /** Sends and reads the answer with `use`, all under one deadline, repeats included. */
  async run<T>(call: Call, use: (response: Response) => Promise<T>): Promise<T> {
    using deadline = new Deadline(this.world, call.signal, call.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    for (let failures = 0, elsewhere = 0; ; ) {
      deadline.check()
      const url = this.places.at(call.url)
      try {
        return await this.#once({ ...call, url }, deadline, use)
      } catch (error) {
        deadline.check()
        if (!(error instanceof SandglassError)) throw error
        if (OF_ONE_PLACE.has(error.code)) this.places.failed(url)
        // Nobody has it, so whatever it is it may be sent to the next place, and at once.
        if (elsewhere < this.places.others(url) && wasNeverReached(error.cause) && !(call.body instanceof ReadableStream)) {
          elsewhere += 1
          continue
        }
        if (!call.repeatable) throw error
        if (isHeadersTimeout(error)) continue
        failures += 1
        const delayMs = planRetry(error, failures, this.world.random(), call.retry)
        if (delayMs === undefined) throw error
        await this.#pause(delayMs, deadline)
      }
    }
  }

  async #pause(delayMs: number, deadline: Deadline): Promise<void> {
    try {
      await sleep(this.world, delayMs, deadline.signal)
    } catch (error) {
      deadline.check()
      throw error
    }
  }

  async #once<T>(call: Call, deadline: Deadline, use: (response: Response) => Promise<T>): Promise<T> {
    const response = await this.#fetch(call, deadline)
    try {
      if (response.ok || response.status === 304) return await use(response)
      const retryAfterSeconds = parseRetryAfter(response.headers.get('retry-after'), Date.now())
      throw errorOfAnswer({ status: response.status, url: call.url, apiUrl: this.apiUrl, text: await boundedText(response), retryAfterSeconds })
    } catch (error) {
      if (error instanceof SandglassError) throw error
      deadline.check()
      // The connection broke while the answer was being read.
      throw networkError(call.url, error)
    }
  }

  async #fetch(call: Call, deadline: Deadline): Promise<Response> {
    const source = new BodySource(call.body)
    const body = call.json === undefined ? source.body : JSON.stringify(call.json)
    try {
      return await this.world.fetch(call.url, {
        method: call.method,
        headers: {
          ...this.headers,
          ...(call.json === undefined ? {} : { 'content-type': 'application/json' }),
          ...call.headers,
        },
        ...(body === undefined ? {} : { body }),
        ...(body instanceof ReadableStream ? { duplex: 'half' as const } : {}),
        redirect: 'error',
        signal: deadline.signal,
      })
    } catch (error) {
      source.check()
      deadline.check()
      throw networkError(call.url, error)
    }
  }
}
