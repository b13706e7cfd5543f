/** Tracing whose spans a test can read. Ids count up, so that equal runs give equal traces. */
import type { Attributes, SpanStart, Tracing } from '@sandglass/telemetry'

export type RecordedSpan = {
  readonly name: string
  readonly start: SpanStart
  readonly traceparent: string
  readonly attributes: Attributes
  ended: { readonly error?: string | undefined; readonly endedAtMs?: number } | undefined
}

const TRACE_ID = 'a'.repeat(32)

export function recordSpans(): { readonly tracing: Tracing; readonly spans: readonly RecordedSpan[] } {
  const spans: (RecordedSpan & { attributes: Attributes })[] = []
  const tracing: Tracing = {
    isOn: true,
    open(name, start) {
      const traceId = start.parent?.split('-')[1] ?? TRACE_ID
      const spanId = String(spans.length + 1).padStart(16, '0')
      const span: (typeof spans)[number] = { name, start, traceparent: `00-${traceId}-${spanId}-01`, attributes: start.attributes ?? {}, ended: undefined }
      spans.push(span)
      return {
        traceparent: span.traceparent,
        set(attributes) {
          span.attributes = { ...span.attributes, ...attributes }
        },
        end(how = {}) {
          if (span.ended !== undefined) throw new Error(`${name} ended twice`)
          span.ended = how
        },
      }
    },
    stop: async () => {},
  }
  return { tracing, spans }
}
