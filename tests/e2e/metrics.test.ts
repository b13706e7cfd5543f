/** A running installation tells what deploy/ asks for, under the names and labels of its catalogues, and Prometheus' linter is content. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { parserOf } from '@sandglass/contract'
import { Sandbox, type Sandglass } from '@sandglass/sdk'
import Type from 'typebox'
import { readDeployment } from '../deploy/deployment.ts'
import { seriesOf } from '../deploy/exposition.ts'
import { promtool } from '../deploy/promtool.ts'
import { ROLES } from '../deploy/roles-metrics.ts'
import { type Told, toldFaults, unheard } from '../deploy/told.ts'
import { until } from './bounds.ts'
import { sharedInstallation } from './file-installation.ts'
import type { Installation } from './installation.ts'

const StatusSchema = Type.Object({
  installation: Type.Object({ roles: Type.Array(Type.Object({ name: Type.String(), url: Type.Union([Type.String(), Type.Null()]) })) }),
})
const statuses = parserOf(StatusSchema)

type Text = Told & { readonly text: string }

/** What metrics are about: a create, execs in both forms, a delete. */
async function liveOnce(client: Sandglass): Promise<void> {
  const sandbox = await Sandbox.create({ client })
  await sandbox.exec(['true'])
  const process = await sandbox.spawn(['echo', 'hello'])
  await process.exit
  await sandbox.delete()
}

async function textsOf(installation: Installation): Promise<Text[]> {
  const { roles } = statuses.parse(JSON.parse(await installation.ok(['status', '--json']))).installation
  return Promise.all(
    ROLES.map(async (role) => {
      const url = roles.find(({ name }) => name === role.package)?.url
      assert.ok(typeof url === 'string', `${role.package} says where it answers`)
      const text = await (await fetch(`${url}/metrics`)).text()
      return { role, text, series: seriesOf(text) }
    }),
  )
}

let texts: readonly Text[] = []

before(async () => {
  const installation = await sharedInstallation()
  await liveOnce(installation.client())
  // Reports of what was done come in behind it.
  const whole = async (): Promise<boolean> => {
    texts = await textsOf(installation)
    return texts.flatMap(toldFaults).length === 0
  }
  await until(20_000, 'every metric is told', whole).catch(() => undefined)
})

test('each metric of each catalogue is told, with exactly its labels, and nothing else is; no label holds an id', () => {
  assert.equal(texts.length, ROLES.length)
  assert.deepEqual(texts.flatMap(toldFaults), [])
})

test('each series that a rule or a panel asks for by name and label is told', () => assert.deepEqual(unheard(texts, readDeployment()), []))

test('promtool finds nothing to say against the text of any role, and does against one that it should', async () => {
  for (const { role, text } of texts) assert.equal(await promtool(['check', 'metrics'], text), '', role.package)
  assert.match(await promtool(['check', 'metrics'], '# TYPE sandglass_free_disk_mb gauge\nsandglass_free_disk_mb 1\n'), /no help text/)
})
