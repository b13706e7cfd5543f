/** The HTTP end of an OpenTelemetry collector: takes OTLP/HTTP with JSON bodies and keeps the spans. */
import { createServer, type Server } from 'node:http'
import { isTraceparent } from '@sandglass/telemetry'

export type CollectedSpan = {
  readonly service: string
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly startNano: bigint
  readonly endNano: bigint
  readonly error: string | undefined
  readonly attributes: ReadonlyMap<string, string>
}

type Json = { readonly [name: string]: unknown }

const object = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.fromEntries(Object.entries(value)) : {})
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(object) : [])
const text = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')

function attributesOf(value: unknown): Map<string, string> {
  return new Map(
    list(value).map((attribute) => {
      const { stringValue, intValue, doubleValue, boolValue } = object(attribute['value'])
      return [text(attribute['key']), String(stringValue ?? intValue ?? doubleValue ?? boolValue ?? '')]
    }),
  )
}

function spansOf(body: Json): CollectedSpan[] {
  return list(body['resourceSpans']).flatMap((resource) => {
    const service = attributesOf(object(resource['resource'])['attributes']).get('service.name') ?? ''
    return list(resource['scopeSpans']).flatMap((scope) =>
      list(scope['spans']).map((span) => ({
        service,
        name: text(span['name']),
        traceId: text(span['traceId']),
        spanId: text(span['spanId']),
        parentSpanId: text(span['parentSpanId']),
        startNano: BigInt(text(span['startTimeUnixNano'])),
        endNano: BigInt(text(span['endTimeUnixNano'])),
        error: object(span['status'])['code'] === 2 ? text(object(span['status'])['message']) : undefined,
        attributes: attributesOf(span['attributes']),
      })),
    )
  })
}

export class TraceCollector implements AsyncDisposable {
  readonly spans: CollectedSpan[] = []
  readonly paths: string[] = []
  readonly #server: Server

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        this.paths.push(request.url ?? '')
        this.spans.push(...spansOf(object(JSON.parse(Buffer.concat(chunks).toString()))))
        response.setHeader('content-type', 'application/json').end('{}')
      })
    })
  }

  static async start(): Promise<TraceCollector> {
    const collector = new TraceCollector()
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve))
    return collector
  }

  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the collector does not listen')
    return `http://127.0.0.1:${address.port}`
  }

  /** Spans of the trace that a `traceparent` names. */
  ofTrace(traceparent: string): CollectedSpan[] {
    if (!isTraceparent(traceparent)) throw new Error(`not a traceparent: ${traceparent}`)
    return this.spans.filter(({ traceId }) => traceId === traceparent.split('-')[1])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
