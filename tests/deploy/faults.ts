/** What is wrong with a deployment, in sentences: it asks for a series that no role has, or wakes somebody without saying what to do. */
import type { Alert, Deployment } from './deployment.ts'
import { expressionsOf } from './deployment.ts'
import { type Asked, askedBy } from './expression.ts'
import { metricOf, ROLES, SCRAPED_LABELS } from './roles-metrics.ts'

export function deploymentFaults(deployment: Deployment): string[] {
  const asked = expressionsOf(deployment).map(({ where, expression }) => ({ where, asked: askedBy(expression) }))
  return [
    ...asked.flatMap(({ where, asked: one }) => askedFaults(where, one)),
    ...deployment.alerts.flatMap((alert) => alertFaults(alert, deployment)),
    ...deployment.runbooks
      .filter((title) => title.startsWith('Sandglass') && !deployment.alerts.some(({ alert }) => alert === title))
      .map((title) => `docs/runbooks.md: there is no alert ${title}`),
    ...unread(asked.flatMap(({ asked: one }) => one.selectors.map(({ name }) => name))),
  ]
}

function askedFaults(where: string, { selectors, grouped }: Asked): string[] {
  const known = selectors.map(({ name }) => metricOf(name))
  const may = new Set<string>([...SCRAPED_LABELS, ...known.flatMap((one) => one?.labels ?? [])])
  return [
    ...(selectors.length === 0 ? [`${where}: asks for no series`] : []),
    ...selectors.flatMap(({ name, labels }, index) => {
      const metric = known[index]
      if (metric === undefined) return [`${where}: no role has ${name}`]
      return labels.filter((label) => !metric.labels.includes(label)).map((label) => `${where}: ${name} has no label ${label}`)
    }),
    ...grouped.filter((label) => !may.has(label)).map((label) => `${where}: groups by ${label}, which none of its series has`),
  ]
}

function alertFaults({ alert, expr, for: duration, annotations }: Alert, { alerts, runbooks, ruleTests }: Deployment): string[] {
  const faults: string[] = []
  if (alerts.filter((other) => other.alert === alert).length > 1) faults.push('has that name twice')
  if (!/^[1-9]\d*[mh]$/.test(duration)) faults.push(`waits for ${duration}, which is no number of minutes or hours`)
  if (annotations.runbook_url !== `docs/runbooks.md#${alert.toLowerCase()}`) faults.push('leads to a runbook of another name')
  if (!runbooks.includes(alert)) faults.push('has no runbook')
  if (!ruleTests.includes(`{alertname="${alert}"}`)) faults.push('is fired by no test in deploy/prometheus/tests')
  const { selectors, grouped, aggregates } = askedBy(expr)
  const left = aggregates ? grouped : [...SCRAPED_LABELS, ...selectors.flatMap(({ name }) => metricOf(name)?.labels ?? [])]
  for (const [, label = ''] of annotations.summary.matchAll(/\$labels\.(\w+)/g)) if (!left.includes(label)) faults.push(`tells ${label}, which is not left`)
  return faults.map((fault) => `alert ${alert}: ${fault}`)
}

/** A metric that is on no panel and in no alert is one that nobody looks at. */
function unread(series: readonly string[]): string[] {
  const read = new Set(series.flatMap((name) => metricOf(name)?.metric ?? []))
  const all = new Set(ROLES.flatMap(({ catalogue }) => Object.keys(catalogue)))
  return [...all].filter((name) => !read.has(name)).map((name) => `${name}: on no panel and in no alert`)
}
