/** What an agent does when its control plane is away, wrong, or has given its epoch to another. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { TEST_AUTHORITY } from '@sandglass/testkit'
import type { Agent } from '../src/agent.ts'
import { jsonLog } from '../src/log.ts'
import { filesHolding } from './support/files-holding.ts'
import { GatewayClient } from './support/gateway-client.ts'
import { Installation, newSandbox, specOf, testWorld } from './support/installation.ts'
import { until } from './support/until.ts'

let installation: Installation
let agent: Agent
const lines: string[] = []
const world = {
  ...testWorld,
  log: jsonLog(
    (line) => void lines.push(line),
    () => new Date(),
  ),
}

before(async () => {
  installation = await Installation.create()
  installation.plane.renewPeriodMs = 200
  agent = await installation.startAgent(world)
})
after(() => installation[Symbol.asyncDispose]())

async function start(env: Record<string, string> = {}, generation = 1, sandbox = newSandbox()): Promise<string> {
  const { plane } = installation
  const { ticket, spec } = plane.ticket(await specOf(sandbox, { driver: 'fake', env }), { generation, host: agent.hostId })
  plane.sendStart(ticket, spec)
  await plane.untilReported('ready', sandbox, (report) => report.generation === generation)
  return sandbox
}

async function answers(sandbox: string): Promise<number> {
  const gateway = new GatewayClient(agent.dataPlaneUrl, sandbox, 1)
  const { status } = await gateway.send('GET', '/v1/health')
  gateway.close()
  return status
}

test('an outage ends nothing, and what ended meanwhile is told after it', async () => {
  const { plane } = installation
  const [lives, dies] = [await start(), await start()]
  const seq = plane.seq
  plane.outage = true
  plane.breakWatches()
  process.kill(installation.pidOf(dies), 'SIGKILL')
  await until('its end to be due', () => (lines.some((line) => line.includes('"sandbox.ended"') && line.includes(dies)) ? true : undefined))
  assert.equal(await answers(lives), 200)
  assert.deepEqual(plane.reported('ended', dies), [])
  plane.outage = false
  await plane.untilReported('ended', dies)
  await until('renewals', () => (plane.seq > seq ? true : undefined))
  await plane.untilWatching()
  assert.equal(await answers(lives), 200)
  plane.sendEnd({ sandbox: lives, upto: 2, host: agent.hostId })
  await plane.untilReported('ended', lives)
})

test('a line of the watch that is none is survived: the watch is opened again', async () => {
  const { plane } = installation
  for (const line of ['not json', '{"type":"start"}', `{"type":"${'x'.repeat(600_000)}"}`]) {
    await plane.untilWatching()
    plane.sendLine(line)
    await until('the watch to be opened again', () => (plane.watching ? undefined : true))
  }
  await plane.untilWatching()
  const sandbox = await start()
  plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
  await plane.untilReported('ended', sandbox)
})

test('a renewal that is refused ends everything, and the next epoch begins with nothing', async () => {
  const { plane } = installation
  const sandbox = await start()
  const { epoch } = plane
  plane.fence()
  const ended = await plane.untilReported('ended', sandbox)
  assert.deepEqual([ended.upto, ended.reason], [1, 'recovered'])
  assert.equal(plane.epoch, epoch + 2)
  await plane.untilWatching()
  const next = newSandbox()
  const { ticket, spec } = plane.ticket(await specOf(next, { driver: 'fake' }), { generation: 1, host: agent.hostId, epoch })
  plane.sendStart(ticket, spec)
  assert.equal((await plane.untilReported('refused', next)).code, 'stale_epoch')
  await start({}, 1, newSandbox())
})

test('a host whose lease was taken from it while its agent was away ends everything, and begins anew', async () => {
  const { plane } = installation
  const sandbox = await start()
  const { epoch } = plane
  await installation.stopAgent(agent)
  plane.fence()
  agent = await installation.startAgent(world)
  assert.equal((await plane.untilReported('ended', sandbox)).reason, 'recovered')
  assert.equal(plane.epoch, epoch + 2)
  await plane.untilWatching()
  await start()
})

test('a runtime that dies before its guest has dialled the next agent is noticed by its process alone', async () => {
  const sandbox = await start()
  const pid = installation.pidOf(sandbox)
  process.kill(pid, 'SIGSTOP')
  await installation.stopAgent(agent)
  agent = await installation.startAgent(world)
  assert.deepEqual(installation.plane.reported('ended', sandbox), [], 'what is stopped is alive')
  process.kill(pid, 'SIGKILL')
  assert.equal((await installation.plane.untilReported('ended', sandbox)).reason, 'runtime_exited')
})

test('a second agent of the same installation does not start', async () => {
  const second = installation.spawnAgent()
  const code = await new Promise((resolve) => second.once('exit', resolve))
  assert.equal(code, 1)
})

test('health, readiness and metrics answer', async () => {
  assert.equal((await fetch(`${agent.healthUrl}/healthz`)).status, 200)
  assert.equal((await fetch(`${agent.healthUrl}/readyz`)).status, 200)
  await start()
  const metrics = await (await fetch(`${agent.healthUrl}/metrics`)).text()
  for (const line of [
    /^sandglass_host_sandboxes\{phase="running"\} [1-9]\d*$/m,
    /^sandglass_host_starts_total\{outcome="ready"\} 1$/m,
    /^sandglass_host_start_duration_seconds_count\{path="cold"\} 1$/m,
    /^sandglass_host_start_phase_duration_seconds_count\{path="cold",phase="record"\} 1$/m,
    /^sandglass_host_orders_total\{type="start",outcome="taken"\} 1$/m,
    /^sandglass_host_lease_renewals_total\{outcome="answered"\} [1-9]\d*$/m,
    /^sandglass_host_control_plane_connected 1$/m,
    /^sandglass_host_disk_free_bytes [1-9]\d{6,}$/m,
  ])
    assert.match(metrics, line)
  assert.equal((await fetch(`${agent.healthUrl}/v1/anything`)).status, 404)
  assert.ok(existsSync(agent.layout.announcement))
})

test('logs and disk hold no token and no value of an environment', async () => {
  const sandbox = await start({ PASSWORD: 'correct horse battery staple' })
  for (const secret of [TEST_AUTHORITY.joinToken, 'correct horse']) assert.deepEqual(filesHolding(secret, agent.layout.root), [], secret)
  installation.plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
  await installation.plane.untilReported('ended', sandbox)
  const text = lines.join('')
  for (const secret of [TEST_AUTHORITY.joinToken, 'correct horse']) assert.ok(!text.includes(secret), secret)
})
