/** Every metric of the gateway. */
import { type Catalogue, Metrics, observeProcess, PROCESS_METRICS } from '@sandglass/telemetry'

export const GATEWAY_METRICS = {
  http_server_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from a request’s head to the last byte of its answer.',
    labels: ['http_request_method', 'http_route', 'http_response_status_code'],
  },
  sandglass_gateway_answers_cut_total: { type: 'counter', help: 'Answers that ended before their last byte.' },
  sandglass_gateway_access_questions_total: { type: 'counter', help: 'Questions to the control plane: who may reach what, where.' },
  sandglass_gateway_feed_lost_total: { type: 'counter', help: 'Times the control plane’s feed of revocations was lost.' },
  sandglass_gateway_feed_connected: { type: 'gauge', help: '1: revocations arrive.' },
  sandglass_gateway_sessions: { type: 'gauge', help: 'Requests and WebSockets that are open.' },
  sandglass_gateway_sessions_total: { type: 'counter', help: 'WebSockets opened.', labels: ['kind'] },
  sandglass_gateway_session_duration_seconds: { type: 'histogram', help: 'Life of WebSockets, of an exec until its program’s end.', labels: ['kind'] },
  sandglass_gateway_sessions_dead_total: { type: 'counter', help: 'WebSockets closed because their client did not answer heartbeats.' },
  sandglass_gateway_connections: { type: 'gauge', help: 'Connections of clients.' },
  sandglass_gateway_client_bytes_total: {
    type: 'counter',
    help: 'Bytes on connections of clients, with all that HTTP and WebSockets add.',
    labels: ['direction'],
  },
  sandglass_gateway_buffered_bytes: { type: 'gauge', help: 'Output held for answers in JSON.' },
  sandglass_gateway_host_sessions: { type: 'gauge', help: 'Connections to hosts.' },
  sandglass_gateway_host_sessions_opened_total: { type: 'counter', help: 'Connections to hosts that were opened.' },
  sandglass_gateway_host_sessions_silent_total: { type: 'counter', help: 'Connections to hosts that were cut because the host did not answer.' },
  ...PROCESS_METRICS,
} as const satisfies Catalogue

export type GatewayMetrics = Metrics<typeof GATEWAY_METRICS>

export function gatewayMetrics(): GatewayMetrics {
  const metrics = new Metrics(GATEWAY_METRICS)
  observeProcess(metrics)
  return metrics
}
