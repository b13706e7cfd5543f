/** An operator takes the one host of an installation out of service and back, while sandboxes run on it. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { HostSchema, parserOf } from '@sandglass/contract'
import { Sandbox, type Sandglass } from '@sandglass/sdk'
import { until } from './bounds.ts'
import { ownInstallation } from './file-installation.ts'
import type { Installation } from './installation.ts'
import { allSentries } from './sentries.ts'

const hosts = parserOf(HostSchema)
const SMALL = { vcpu: 0.1, memoryMb: 128, diskGb: 1 }
const DEADLINE_SECONDS = 20
const REGISTERS_WITHIN_MS = 30_000
const PLACED_WITHIN_MS = 30_000

let installation: Installation
let client: Sandglass
let host: string
let running: Sandbox
let waiting: Sandbox

const inspect = async () => hosts.parse(JSON.parse(await installation.ok(['host', 'inspect', host, '--json'])))
const create = async (): Promise<Sandbox> => Sandbox.create({ client, resources: SMALL, ttlSeconds: 900 })
const seen = async ({ id }: Sandbox) => (await Sandbox.get(id, { client })).resource

before(async () => {
  installation = await ownInstallation(() => ({}))
  client = installation.client()
  const [line = ''] = (await installation.ok(['host', 'ls', '--json=lines'])).split('\n')
  host = hosts.parse(JSON.parse(line)).name
  running = await create()
})

test('a cordoned host gets nothing new: a create waits and says so, what runs goes on, and uncordon lets it in', async () => {
  assert.match(await installation.ok(['host', 'cordon', host]), / is cordoned\n$/)
  waiting = (await Sandbox.create({ client, resources: SMALL, ttlSeconds: 900, wait: false })).sandbox
  const reason = await until(PLACED_WITHIN_MS, 'a reason', async () => (await seen(waiting)).unschedulable_reason ?? undefined)
  assert.match(reason, /^no_suitable_host: .*1 host cordoned/)
  assert.equal((await running.exec(['echo', 'on'])).stdout, 'on\n')
  await until(PLACED_WITHIN_MS, 'the pool is given up', async () => (await inspect()).pool.held === 0)
  assert.equal((await seen(waiting)).status, 'pending')
  assert.match(await installation.ok(['host', 'uncordon', host]), / is ready\n$/)
  await until(PLACED_WITHIN_MS, 'it runs', async () => (await seen(waiting)).status === 'ready')
})

test('labels are told in the table', async () => {
  await installation.ok(['host', 'label', host, 'zone=here', 'class=small'])
  assert.match(await installation.ok(['host', 'ls', '--label', 'zone=here']), /class=small zone=here\n$/)
})

test('a host in use is not removed', async () => {
  const { code, stderr } = await installation.cli(['host', 'rm', host])
  assert.equal(code, 125)
  assert.match(stderr, / holds 2 sandboxes\. Empty it with `sandglass host drain HOST`, .*\[host_in_use\]\n$/)
})

test('a drain ends what runs before its deadline, with the reason, and leaves no sentry', async () => {
  const beganMs = performance.now()
  const { code, stdout, stderr } = await installation.cli(['host', 'drain', host, '--deadline', String(DEADLINE_SECONDS)])
  const tookMs = performance.now() - beganMs
  assert.deepEqual([code, stdout.toString('utf8')], [0, `${host} is drained\n`], stderr)
  assert.ok(tookMs < DEADLINE_SECONDS * 1_000, `${tookMs} ms`)
  for (const sandbox of [running, waiting]) {
    const { status, status_reason: reason } = await seen(sandbox)
    assert.deepEqual([status, reason], ['failed', 'host_drained: an operator drained the host'])
    await assert.rejects(sandbox.exec(['true']), { code: 'sandbox_failed' })
  }
  assert.deepEqual(allSentries(installation.home), [])
  const { reserved, drain } = await inspect()
  assert.deepEqual([reserved, drain?.state], [{ vcpu: 0, memory_mb: 0, disk_gb: 0 }, 'drained'])
})

test('a removed host gets no work while its agent runs on; the next start invites it again, and it takes work when an operator says so', async () => {
  const { epoch } = await inspect()
  await installation.ok(['host', 'rm', host])
  await until(REGISTERS_WITHIN_MS, 'its agent is refused', async () =>
    /certificate was revoked/.test(await installation.ok(['logs', 'host-agent', '--lines', '50'])),
  )
  assert.match((await installation.cli(['host', 'inspect', host])).stderr, /\[host_not_found\]/)
  await installation.ok(['down'])
  await installation.ok(['up', '--detach'])
  const back = await until(REGISTERS_WITHIN_MS, 'it is back', async () => {
    const { code, stdout } = await installation.cli(['host', 'inspect', host, '--json'])
    return code === 0 ? hosts.parse(JSON.parse(stdout.toString('utf8'))) : undefined
  })
  assert.deepEqual([back.status, back.cordoned, back.labels, back.epoch], ['cordoned', true, {}, epoch + 2])
  await installation.ok(['host', 'uncordon', host])
  const again = await create()
  assert.equal((await again.exec(['echo', 'again'])).stdout, 'again\n')
  for (const sandbox of [again, running, waiting]) await sandbox.delete()
})
