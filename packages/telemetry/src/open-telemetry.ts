/** Tracing by OpenTelemetry's own SDK. Spans wait in a bounded queue and are dropped past it: a collector that is away holds up nothing. */
import { type Context, type HrTime, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { isTraceparent, type OpenSpan, type Tracing } from './tracing.ts'

const QUEUED_SPANS = 2_048
const EXPORT_DELAY_MS = 1_000
const EXPORT_TIMEOUT_MS = 5_000
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, consumer: SpanKind.CONSUMER, internal: SpanKind.INTERNAL } as const

/** Seconds and nanoseconds: a `Date` would cut off what is below a millisecond, and short phases with it. */
const timeOf = (wallMs: number): HrTime => [Math.floor(wallMs / 1_000), Math.round((wallMs % 1_000) * 1e6)]

function contextOf(parent: string | undefined): Context {
  if (!isTraceparent(parent)) return ROOT_CONTEXT
  const [, traceId = '', spanId = '', flags = '00'] = parent.split('-')
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true })
}

function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')}`
}

function opened(span: Span): OpenSpan {
  return {
    traceparent: traceparentOf(span),
    set: (attributes) => void span.setAttributes(attributes),
    end({ error, endedAtMs } = {}) {
      if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
      span.end(endedAtMs === undefined ? undefined : timeOf(endedAtMs))
    },
  }
}

export function openTelemetry({ service, version }: { readonly service: string; readonly version: string }): Tracing {
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'service.version': version }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ timeoutMillis: EXPORT_TIMEOUT_MS }),
        maxQueueSize: QUEUED_SPANS,
        scheduledDelayMillis: EXPORT_DELAY_MS,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  })
  const tracer = provider.getTracer('sandglass', version)
  return {
    isOn: true,
    open: (name, { kind, parent, attributes = {}, startedAtMs }) =>
      opened(
        tracer.startSpan(name, { kind: KINDS[kind], attributes, ...(startedAtMs === undefined ? {} : { startTime: timeOf(startedAtMs) }) }, contextOf(parent)),
      ),
    stop: () => provider.shutdown(),
  }
}
