/** What is wrong with what the roles tell, in sentences: a metric of a catalogue that is missing, one of none, other labels, an id, silence where deploy/ asks. */
import { type Deployment, expressionsOf } from './deployment.ts'
import type { Series } from './exposition.ts'
import { askedBy } from './expression.ts'
import { metricOf, type Role, SCRAPED_LABELS } from './roles-metrics.ts'

export type Told = { readonly role: Role; readonly series: readonly Series[] }

/** An id of ours (two letters, then eighteen) or a digest. */
const ID = /(^|[^a-z])[a-z]{2}[a-z0-9]{18}([^a-z0-9]|$)|[0-9a-f]{12}/

export function toldFaults({ role, series }: Told): string[] {
  const there = new Set(series.map(({ name }) => metricOf(name)?.metric))
  const missing = Object.keys(role.catalogue).filter((name) => !there.has(name))
  return [...missing.map((name) => `${role.package} tells no ${name}`), ...series.flatMap((one) => seriesFaults(role, one))]
}

function seriesFaults(role: Role, { name, labels }: Series): string[] {
  const known = metricOf(name)
  if (known === undefined || !(known.metric in role.catalogue)) return [`${role.package}: ${name} is in no catalogue of it`]
  const declared = known.labels.filter((label) => !SCRAPED_LABELS.some((scraped) => scraped === label)).sort()
  const told = Object.keys(labels).sort()
  return [
    ...(told.join() === declared.join() ? [] : [`${role.package}: ${name} has the labels ${told.join()}, not ${declared.join()}`]),
    ...Object.entries(labels).flatMap(([label, value]) => (ID.test(value) ? [`${role.package}: ${name} has an id in its label ${label}`] : [])),
  ]
}

/** What a rule or panel asks for by name and by a label's value, and no role tells. */
export function unheard(all: readonly Told[], deployment: Deployment): string[] {
  const series = all.flatMap(({ role, series: own }) =>
    own.map(({ name, labels }) => ({ name, labels: new Map(Object.entries({ ...labels, job: role.job })) })),
  )
  return expressionsOf(deployment).flatMap(({ where, expression }) =>
    askedBy(expression).selectors.flatMap(({ name, equal }) => {
      const heard = name === 'up' || series.some((one) => one.name === name && Object.entries(equal).every(([label, value]) => one.labels.get(label) === value))
      return heard ? [] : [`${where}: nobody tells ${name} with ${JSON.stringify(equal)}`]
    }),
  )
}
