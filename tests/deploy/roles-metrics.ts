/** What the roles expose: their catalogues, by the job that scrapes them. */
import { CONTROL_PLANE_METRICS } from '@sandglass/control-plane'
import { GATEWAY_METRICS } from '@sandglass/gateway'
import { HOST_AGENT_METRICS } from '@sandglass/host-agent/metrics/catalogue'
import type { Catalogue, Declared } from '@sandglass/telemetry'

export type Role = { readonly package: string; readonly job: string; readonly catalogue: Catalogue }

export const ROLES: readonly Role[] = [
  { package: 'control-plane', job: 'sandglass-control-plane', catalogue: CONTROL_PLANE_METRICS },
  { package: 'gateway', job: 'sandglass-gateway', catalogue: GATEWAY_METRICS },
  { package: 'host-agent', job: 'sandglass-host-agent', catalogue: HOST_AGENT_METRICS },
]

/** Prometheus adds them to every series that it scrapes. */
export const SCRAPED_LABELS = ['job', 'instance'] as const
/** A series of Prometheus' own, of each scrape. */
const OWN: Catalogue = { up: { type: 'gauge', help: 'The scrape succeeded.' } }

export type Known = { readonly metric: string; readonly declared: Declared; readonly labels: readonly string[] }

/** The metric that a series of this name belongs to: a histogram has no series of its own name. */
export function metricOf(series: string): Known | undefined {
  for (const catalogue of [...ROLES.map((role) => role.catalogue), OWN]) {
    const declared = catalogue[series]
    if (declared !== undefined && declared.type !== 'histogram') return { metric: series, declared, labels: [...(declared.labels ?? []), ...SCRAPED_LABELS] }
    const [, base = '', suffix] = /^(.+)_(bucket|sum|count)$/.exec(series) ?? []
    const histogram = catalogue[base]
    if (histogram?.type !== 'histogram') continue
    return { metric: base, declared: histogram, labels: [...(histogram.labels ?? []), ...SCRAPED_LABELS, ...(suffix === 'bucket' ? ['le'] : [])] }
  }
  return undefined
}
