/** The judge of what roles tell finds each kind of defect in a text that is whole otherwise; `tests/e2e/metrics.test.ts` shows it a real one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Deployment, expressionsOf, readDeployment } from './deployment.ts'
import { type Series, seriesOf } from './exposition.ts'
import { askedBy } from './expression.ts'
import { metricOf, ROLES } from './roles-metrics.ts'
import { type Told, toldFaults, unheard } from './told.ts'

const deployment: Deployment = readDeployment()
const selectors = expressionsOf(deployment).flatMap(({ expression }) => askedBy(expression).selectors)

/** Everything that is declared, and everything that is asked for. */
const whole: readonly Told[] = ROLES.map((role) => ({
  role,
  series: Object.entries(role.catalogue).flatMap(([metric, { type, labels = [] }]): Series[] => {
    const names = type === 'histogram' ? [`${metric}_bucket`, `${metric}_sum`, `${metric}_count`] : [metric]
    const any = (name: string) => Object.fromEntries([...labels, ...(name.endsWith('_bucket') ? ['le'] : [])].map((label) => [label, 'any']))
    const asked = selectors.filter(({ name }) => metricOf(name)?.metric === metric)
    return [
      ...names.map((name) => ({ name, labels: any(name) })),
      ...asked.map(({ name, equal }) => {
        const { job: _, ...own } = equal
        return { name, labels: { ...any(name), ...own } }
      }),
    ]
  }),
}))

/** With the series of one metric changed, of the role that the sentence is about. */
const changed = (name: string, change: (series: Series) => Series[]): readonly Told[] =>
  whole.map(({ role, series }) => ({ role, series: series.flatMap((one) => (one.name === name ? change(one) : [one])) }))
const faultsOf = (all: readonly Told[]): string[] => [...all.flatMap(toldFaults), ...unheard(all, deployment)]

test('a text that has all is right', () => assert.deepEqual(faultsOf(whole), []))

for (const [what, told, fault] of [
  ['a metric that nobody tells', changed('sandglass_host_epoch', () => []), 'host-agent tells no sandglass_host_epoch'],
  [
    'a metric of no catalogue',
    changed('sandglass_host_epoch', (one) => [one, { name: 'sandglass_host_era', labels: {} }]),
    'host-agent: sandglass_host_era is in no catalogue of it',
  ],
  [
    'a metric of another role',
    changed('sandglass_host_epoch', (one) => [one, { name: 'sandglass_wakeups_connected', labels: {} }]),
    'host-agent: sandglass_wakeups_connected is in no catalogue of it',
  ],
  [
    'a label that is not declared',
    changed('sandglass_wakeups_connected', (one) => [{ ...one, labels: { replica: '1' } }]),
    'control-plane: sandglass_wakeups_connected has the labels replica, not ',
  ],
  [
    'an id in a label',
    changed('sandglass_gateway_sessions_total', (one) => [{ ...one, labels: { kind: 'sbl1abcdefghijklmnop' } }]),
    'gateway: sandglass_gateway_sessions_total has an id in its label kind',
  ],
  [
    'a digest in a label',
    changed('sandglass_gateway_sessions_total', (one) => [{ ...one, labels: { kind: '0123456789ab' } }]),
    'gateway: sandglass_gateway_sessions_total has an id in its label kind',
  ],
  [
    'an outcome that is called otherwise',
    changed('sandglass_host_starts_total', (one) => [{ ...one, labels: { outcome: 'broken' } }]),
    'alert SandglassStartsFail: nobody tells sandglass_host_starts_total with {"outcome":"failed"}',
  ],
] satisfies [string, readonly Told[], string][]) {
  test(`${what} is found`, () => assert.ok(faultsOf(told).includes(fault), faultsOf(told).join('\n')))
}

test('the text is read as series', () => {
  assert.deepEqual(seriesOf('# HELP a A.\n# TYPE a counter\na{b="x\\"}",c=""} 1\nd_sum 0.5\n'), [
    { name: 'a', labels: { b: 'x\\"}', c: '' } },
    { name: 'd_sum', labels: {} },
  ])
  assert.throws(() => seriesOf('no sample at all\n'), /no sample/)
})
