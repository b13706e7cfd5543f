/** Rules, dashboard and runbooks ask for what the roles have, and say what to do. Each check is shown a defect that it has to find. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { type Alert, alertsIn, DEPLOY, type Deployment, expressionsOf, panelsIn, ROOT, readDeployment } from './deployment.ts'
import { askedBy } from './expression.ts'
import { deploymentFaults } from './faults.ts'
import { promtool } from './promtool.ts'
import { ROLES } from './roles-metrics.ts'

const deployment = readDeployment()

/** With one text of the alert SandglassRoleDown replaced. */
function alertMutant(change: (alert: Alert) => Alert): Deployment {
  return { ...deployment, alerts: deployment.alerts.map((alert) => (alert.alert === 'SandglassRoleDown' ? change(alert) : alert)) }
}
const asking = (expr: string): Deployment => alertMutant((alert) => ({ ...alert, expr }))
const telling = (annotations: Partial<Alert['annotations']>): Deployment =>
  alertMutant((alert) => ({ ...alert, annotations: { ...alert.annotations, ...annotations } }))

const panel = (expression: string): Deployment => ({ ...deployment, panels: [...deployment.panels, { title: 'mutant', expressions: [expression] }] })

test('alerts, panels and runbooks fit the catalogues of the roles', () => {
  assert.deepEqual(deploymentFaults(deployment), [])
  assert.ok(deployment.alerts.length >= 12 && deployment.panels.length >= 20)
})

for (const [what, mutant, fault] of [
  ['an alert on a metric that no role has', asking('sandglass_invented == 0'), 'alert SandglassRoleDown: no role has sandglass_invented'],
  ['an alert on a label that the metric has not', asking('up{sandbox="x"} == 0'), 'alert SandglassRoleDown: up has no label sandbox'],
  ['an alert that leads elsewhere', telling({ runbook_url: 'docs/runbooks.md#elsewhere' }), 'alert SandglassRoleDown: leads to a runbook of another name'],
  [
    'an alert without patience',
    alertMutant((alert) => ({ ...alert, for: '0s' })),
    'alert SandglassRoleDown: waits for 0s, which is no number of minutes or hours',
  ],
  ['a summary of a label that is not there', telling({ summary: 'Of {{ $labels.tenant }}.' }), 'alert SandglassRoleDown: tells tenant, which is not left'],
  [
    'an alert without a runbook',
    { ...deployment, runbooks: deployment.runbooks.filter((title) => title !== 'SandglassRoleDown') },
    'alert SandglassRoleDown: has no runbook',
  ],
  ['a runbook without an alert', { ...deployment, runbooks: [...deployment.runbooks, 'SandglassGone'] }, 'docs/runbooks.md: there is no alert SandglassGone'],
  ['an alert that no test fires', { ...deployment, ruleTests: '' }, 'alert SandglassRoleDown: is fired by no test in deploy/prometheus/tests'],
  ['a panel of a metric that no role has', panel('sum(rate(sandglass_request_total[5m]))'), 'panel mutant: no role has sandglass_request_total'],
  [
    'a panel of a histogram without its suffix',
    panel('sandglass_sandbox_start_duration_seconds'),
    'panel mutant: no role has sandglass_sandbox_start_duration_seconds',
  ],
  ['a panel that groups by what is no label', panel('sum by (host) (sandglass_hosts)'), 'panel mutant: groups by host, which none of its series has'],
  ['a metric that nobody looks at', { ...deployment, panels: [] }, 'sandglass_orders_sent_total: on no panel and in no alert'],
] satisfies [string, Deployment, string][]) {
  test(`${what} is found`, () => assert.ok(deploymentFaults(mutant).includes(fault), deploymentFaults(mutant).join('\n')))
}

test('a rule that lacks a severity or a summary is not read', () => {
  const rule = (body: string) => `groups: [{name: x, rules: [{alert: SandglassX, expr: up == 0, for: 2m, ${body}}]}]`
  const runbook = 'annotations: {summary: x, runbook_url: x}'
  assert.equal(alertsIn(rule(`labels: {severity: warning}, ${runbook}`)).length, 1)
  for (const body of [
    `labels: {}, ${runbook}`,
    `labels: {severity: urgent}, ${runbook}`,
    'labels: {severity: warning}, annotations: {runbook_url: x}',
    runbook,
  ])
    assert.throws(() => alertsIn(rule(body)), body)
})

test('names and labels are found in any expression', () => {
  assert.deepEqual(
    askedBy('histogram_quantile(0.5, sum by (le, path) (rate(a_bucket{x="1", y=~"a{2}\\"b"}[5m]))) / on (path) b:c offset 5m > bool 2e3 and time() - d == 1'),
    {
      selectors: [
        { name: 'a_bucket', labels: ['x', 'y'], equal: { x: '1' } },
        { name: 'b:c', labels: [], equal: {} },
        { name: 'd', labels: [], equal: {} },
      ],
      grouped: ['le', 'path', 'path'],
      aggregates: true,
    },
  )
})

test('each metric of a catalogue is set somewhere in its role', () => {
  for (const { package: name, catalogue } of ROLES) {
    const sources = globSync(`packages/{${name},telemetry}/src/**/*.ts`, { cwd: ROOT }).map((path) => readFileSync(join(ROOT, path), 'utf8'))
    for (const metric of Object.keys(catalogue))
      assert.ok(
        sources.some((text) => text.includes(`'${metric}'`)),
        `${name}: nothing sets ${metric}`,
      )
  }
})

test('promtool takes the configuration and the rules', async () => {
  assert.equal(await promtool(['check', 'config', join(DEPLOY, 'prometheus/prometheus.yml')]), '')
  for (const path of globSync('prometheus/rules/*.yml', { cwd: DEPLOY })) assert.equal(await promtool(['check', 'rules', join(DEPLOY, path)]), '')
})

test('the alerts fire when they should, and only then', async () => {
  for (const path of globSync('prometheus/tests/*.yml', { cwd: DEPLOY })) assert.equal(await promtool(['test', 'rules', join(DEPLOY, path)]), '')
})

test('an alert that fires for something else, and a panel that is no PromQL, are found', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandglass-rules-'))
  try {
    for (const path of globSync('prometheus/rules/*.yml', { cwd: DEPLOY })) {
      const text = readFileSync(join(DEPLOY, path), 'utf8')
      await writeFile(join(folder, path.replaceAll('/', '-')), text.replace('sandglass_database_up == 0', 'sandglass_database_up == 1'))
    }
    const tests = readFileSync(join(DEPLOY, 'prometheus/tests/alerts.yml'), 'utf8').replace('../rules/*.yml', 'prometheus-rules-*.yml')
    await writeFile(join(folder, 'tests.yml'), tests)
    assert.match(await promtool(['test', 'rules', join(folder, 'tests.yml')]), /SandglassDatabaseAway/)
    assert.match(await promtool(['check', 'rules', await recorded(folder, ['sum(rate(sandglass_hosts))'])]), /expected type range vector/)
    assert.equal(
      await promtool([
        'check',
        'rules',
        await recorded(
          folder,
          expressionsOf(deployment).map(({ expression }) => expression),
        ),
      ]),
      '',
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

/** Expressions as rules that record, so that promtool reads them. JSON is YAML. */
async function recorded(folder: string, expressions: readonly string[]): Promise<string> {
  const path = join(folder, 'recorded.yml')
  const rules = [...new Set(expressions)].map((expr, index) => ({ record: `panel:expression_${index}`, expr }))
  await writeFile(path, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
  return path
}

/** Commands and variables that a text tells people to type, and that there are not. */
function untypable(markdown: string): string[] {
  const commands = new Set(globSync('packages/cli/src/commands/*.ts', { cwd: ROOT }).map((path) => basename(path, '.ts').split('-')[0]))
  const sources = globSync('packages/*/src/**/*.ts', { cwd: ROOT }).map((path) => readFileSync(join(ROOT, path), 'utf8'))
  const typed = [...markdown.matchAll(/\.\/sandglass ([a-z]+)/g)].map(([, name = '']) => name)
  const named = [...markdown.matchAll(/\bSANDGLASS_[A-Z_]*[A-Z]/g)].map(([name]) => name)
  return [...typed.filter((name) => !commands.has(name)), ...named.filter((name) => !sources.some((text) => text.includes(`'${name}'`)))]
}

test('what the runbooks tell to type is there', () => {
  for (const path of ['docs/runbooks.md', 'deploy/README.md']) assert.deepEqual(untypable(readFileSync(join(ROOT, path), 'utf8')), [], path)
  assert.deepEqual(untypable('`SANDGLASS_MAGIC=1 ./sandglass mend`, `./sandglass up`'), ['mend', 'SANDGLASS_MAGIC'])
})

test('the dashboard asks one source, which its reader picks', () => {
  const text = readFileSync(join(DEPLOY, 'grafana/sandglass.json'), 'utf8')
  assert.ok(panelsIn(text).some(({ expressions }) => expressions.length > 0))
  const uids = new Set([...text.matchAll(/"uid": "([^"]*)"/g)].map(([, uid = '']) => uid))
  assert.ok(uids.size === 2 && [...uids].every((uid) => /^(sandglass|\$\{datasource\})$/.test(uid)), [...uids].join(', '))
})
