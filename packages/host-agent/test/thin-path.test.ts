import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatewayClient } from './support/gateway-client.ts'
import { Installation, newSandbox, specOf } from './support/installation.ts'

test('a ticket becomes a gVisor sandbox that answers through the data plane, and an end order leaves nothing of it', async () => {
  await using installation = await Installation.create()
  const { plane } = installation
  const agent = await installation.startAgent()
  const sandbox = newSandbox()
  const { ticket, spec } = plane.ticket(await specOf(sandbox, { env: { GREETING: 'hello' } }), { generation: 1, host: agent.hostId })
  plane.sendStart(ticket, spec)
  const ready = await plane.untilReported('ready', sandbox)
  assert.equal(ready.evidence['driver'], 'gvisor')
  assert.match(ready.evidence['kernel'] ?? '', /gVisor|4\.\d+\.\d+/)

  const gateway = new GatewayClient(agent.dataPlaneUrl, sandbox, 1)
  const health = await gateway.send('GET', '/v1/health')
  assert.equal(health.status, 200)
  assert.equal(JSON.parse(health.body.toString('utf8')).sandbox, sandbox)
  const run = await gateway.run('echo "$GREETING $((6*7))"; hostname; exit 3')
  assert.deepEqual(run, { stdout: `hello 42\n${sandbox}\n`, stderr: '', exitCode: 3 })
  gateway.close()

  plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
  const ended = await plane.untilReported('ended', sandbox)
  assert.equal(ended.upto, 2)
  assert.equal(await agent.census(), 0)
})
