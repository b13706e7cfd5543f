/** What `deploy/` and its runbooks hold, read once and parsed. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parserOf } from '@sandglass/contract'
import Type from 'typebox'
import { parse } from 'yaml'

export const ROOT = join(import.meta.dirname, '../..')
export const DEPLOY = join(ROOT, 'deploy')

const AlertSchema = Type.Object(
  {
    alert: Type.String({ pattern: '^Sandglass[A-Za-z]+$' }),
    expr: Type.String(),
    for: Type.String(),
    labels: Type.Object({ severity: Type.Enum(['critical', 'warning']) }, { additionalProperties: false }),
    annotations: Type.Object({ summary: Type.String({ minLength: 1 }), runbook_url: Type.String() }, { additionalProperties: false }),
  },
  { additionalProperties: false },
)
const rules = parserOf(Type.Object({ groups: Type.Array(Type.Object({ name: Type.String(), rules: Type.Array(AlertSchema) }), { minItems: 1, maxItems: 1 }) }))
const dashboards = parserOf(
  Type.Object({
    panels: Type.Array(Type.Object({ title: Type.String(), targets: Type.Optional(Type.Array(Type.Object({ expr: Type.String(), refId: Type.String() }))) })),
  }),
)

export type Alert = Type.Static<typeof AlertSchema>
export type Panel = { readonly title: string; readonly expressions: readonly string[] }
export type Deployment = {
  readonly alerts: readonly Alert[]
  readonly panels: readonly Panel[]
  /** Titles of the second level. */
  readonly runbooks: readonly string[]
  /** The text of promtool's tests of rules. */
  readonly ruleTests: string
}

/** @throws CodedError `invalid_request` when a rule lacks something or has something more */
export const alertsIn = (yaml: string): Alert[] => rules.parse(parse(yaml)).groups.flatMap((group) => group.rules)

/** Grafana fills in the interval; five minutes are one. */
export const panelsIn = (json: string): Panel[] =>
  dashboards.parse(JSON.parse(json)).panels.map(({ title, targets = [] }) => ({
    title,
    expressions: targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')),
  }))

const headings = (markdown: string): string[] => [...markdown.matchAll(/^## (.+)$/gm)].map(([, title = '']) => title)

export function readDeployment(): Deployment {
  const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
  return {
    alerts: globSync('deploy/prometheus/rules/*.yml', { cwd: ROOT })
      .sort()
      .flatMap((path) => alertsIn(read(path))),
    panels: globSync('deploy/grafana/*.json', { cwd: ROOT }).flatMap((path) => panelsIn(read(path))),
    runbooks: headings(read('docs/runbooks.md')),
    ruleTests: globSync('deploy/prometheus/tests/*.yml', { cwd: ROOT }).map(read).join('\n'),
  }
}

/** Every expression, with where it stands. */
export const expressionsOf = ({ alerts, panels }: Deployment): { readonly where: string; readonly expression: string }[] => [
  ...alerts.map(({ alert, expr }) => ({ where: `alert ${alert}`, expression: expr })),
  ...panels.flatMap(({ title, expressions }) => expressions.map((expression) => ({ where: `panel ${title}`, expression }))),
]
