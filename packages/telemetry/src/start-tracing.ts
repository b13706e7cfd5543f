/**
 * OpenTelemetry traces over OTLP/HTTP, configured by the variables of its specification
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/): OTEL_EXPORTER_OTLP_ENDPOINT or
 * OTEL_EXPORTER_OTLP_TRACES_ENDPOINT turns it on. The libraries cost a role some 25 MiB and a quarter of a second, so they are loaded only then.
 */
import { noTracing, type Tracing } from './tracing.ts'

export type TracedRole = {
  /** `service.name`. */
  readonly service: string
  readonly version: string
  readonly env: Readonly<Record<string, string | undefined>>
}

export async function startTracing({ service, version, env }: TracedRole): Promise<Tracing> {
  const isSet = (name: string): boolean => (env[name] ?? '') !== ''
  if (!isSet('OTEL_EXPORTER_OTLP_ENDPOINT') && !isSet('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')) return noTracing
  if (env['OTEL_SDK_DISABLED'] === 'true') return noTracing
  const { openTelemetry } = await import('./open-telemetry.ts')
  return openTelemetry({ service, version })
}
