export { type Catalogue, type Declared, Metrics, type Sample } from './metrics.ts'
export { observeProcess, PROCESS_METRICS } from './process-metrics.ts'
export { startTracing } from './start-tracing.ts'
export { type Attributes, isTraceparent, noTracing, type OpenSpan, type SpanKind, type SpanStart, type Tracing } from './tracing.ts'
